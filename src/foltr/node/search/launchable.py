"""Signs that a file could run code when it is opened, or that its name hides what it is.

A search shows what somebody may have sent by mail or left in a download folder, and a title says nothing about what a
file does. So the kinds of files that run, launch or install something when their default program opens them are asked
about first (`RISKS`), each kind once. Signs are the ending, the first bytes and permissions. Endings of other systems
are in the list too: folders are shared between machines, and desktops start programs for foreign formats.

Permissions say nothing where the file system has none and marks every file as executable (exFAT, NTFS, SMB), and a
document that was copied from there keeps the mark; so a mark alone counts only where the content is no document.

HTML, PDF, EPUB and office files without macros are documents and are opened. Web archives are not: `.webarchive` runs
scripts as if they came from any site, and word processors run macros of `.mht`.
"""

import os
import stat
import unicodedata
from typing import NamedTuple

from foltr.node.extract import formats

_LAUNCHERS = """
    .desktop .directory .kdelnk .lnk .url .website .webloc .inetloc .fileloc .afploc .ftploc .httploc .mailloc .newsloc
    .telnetloc .vncloc .rtsploc .scf .appref-ms .library-ms .search-ms .searchconnector-ms .settingcontent-ms .service
    .action .theme .themepack .deskthemepack .job .msc .diagcab .diagcfg .diagpkg .rdp .rdg .ica .vnc .nxs .remmina
    .udl .prf .shortcut .alfredworkflow .plasmoid .nemo_action .caction .definition .sfm .qtl
"""
_PROGRAMS = """
    .exe .com .scr .pif .msi .msp .mst .msu .dll .cpl .sys .drv .ocx .xll .wll .app .appimage .bin .run .out .elf .so
    .dylib .bundle .o .ko .kext .jar .jnlp .air .swf .xbap .application .manifest .vsto .osax .prefpane .saver
    .qlgenerator .mdimporter .component .plugin .wdgt .chm .hlp .pyc .pyo .pyz .pyzw .scpt .scptd
"""
_PACKAGES = """
    .deb .udeb .rpm .snap .flatpak .flatpakref .flatpakrepo .ymp .apk .ipa .pkg .mpkg .dmg .iso .img .vhd .vhdx .xpi
    .crx .safariextz .oxt .vsix .whl .egg .gem .nupkg .reg .msix .msixbundle .appx .appxbundle .appinstaller
    .mobileconfig .mobileprovision .provisionprofile .sketchplugin .webarchive .mht .mhtml
"""
_SCRIPTS = """
    .sh .bash .zsh .fish .csh .ksh .tcsh .command .tool .bat .cmd .ps1 .ps1xml .psm1 .psd1 .psc1 .cdxml .vb .vbs .vbe
    .js .jse .mjs .cjs .ws .wsc .wsf .wsh .sct .shb .shs .hta .py .pyw .pl .rb .php .lua .tcl .awk
    .applescript .workflow .wflow .terminal .gadget .inf .ipynb .r .jl .groovy .ahk .au3
"""
_MACROS = """
    .docm .dotm .xlsm .xltm .xlsb .xlam .xla .xlm .xlw .pptm .potm .ppam .ppa .ppsm .sldm .slk .iqy .oqy .rqy .dqy .odc
    .mdb .mda .mde .accdb .accde .accda .accdr .ade .adp .wiz
"""
RISKS = {
    "launchers": "launchers and links, which start a program or open an address",
    "programs": "programs",
    "packages": "packages, disk images and extensions, which install something",
    "scripts": "scripts, where no text editor is known",
    "macros": "documents with macros",
}
_ENDINGS = {"launchers": _LAUNCHERS, "programs": _PROGRAMS, "packages": _PACKAGES, "scripts": _SCRIPTS,
            "macros": _MACROS}  # fmt: skip
_RISK_OF_ENDING = {ending: risk for risk, endings in _ENDINGS.items() for ending in endings.split()}
LAUNCHABLE = frozenset(_RISK_OF_ENDING)

_MAGIC = (
    b"\x7fELF",
    b"MZ",
    b"\xfe\xed\xfa",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"\xca\xfe\xba\xbf",
    b"!<arch>",
)
_LAUNCHER_SECTIONS = (b"[Desktop Entry]", b"[InternetShortcut]")
HEAD = 4096  # bytes that are looked at
_EDITED = ("text", "markdown", "code")  # kinds that a text editor opens
_EXECUTABLE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH

# letters, marks and symbols that are drawn as nothing; those of the categories Cc and Cf are not printable anyway
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_VARIATION_SELECTORS = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))


# file systems without permissions: all files have those of the mount
_WITHOUT_PERMISSIONS = frozenset({
    "vfat", "msdos", "exfat", "ntfs", "ntfs3", "fuseblk", "cifs", "smb3", "smbfs", "9p", "drvfs", "vboxsf",
    "fuse.vmhgfs-fuse", "fuse.gvfsd-fuse", "fuse.jmtpfs", "fuse.simple-mtpfs", "davfs", "fuse.davfs", "hfs", "udf",
})  # fmt: skip


class Risk(NamedTuple):
    """A kind of files that can run code when they are opened."""

    kind: str  # of RISKS
    reason: str


def hidden_name(name: str) -> str | None:
    """Why a file with this name is only shown in its folder; None where the name is what a person sees."""
    if any(map(is_invisible, name)) or name != name.rstrip():
        return "its name has characters that are not seen, so that it may look like another kind of file"
    return None


def risk_of(name: str, status: os.stat_result, head: bytes, *, file_system: str) -> Risk | None:
    """Why opening a file with its default program could run code. `head` is the beginning of its content,
    `file_system` the type of the one that it is on (`mount_type`)."""
    ending = ending_of(name)
    if (kind := _RISK_OF_ENDING.get(ending)) is not None:
        return Risk(kind, f"files with the ending {ending} may run as a program")
    if head.startswith(_MAGIC):
        return Risk("programs", "it begins as a program does")
    if head.startswith(b"#!"):
        return Risk("scripts", "it begins as a script does")
    if any(section in head for section in _LAUNCHER_SECTIONS):
        return Risk("launchers", "it is a launcher")
    if status.st_mode & _EXECUTABLE and file_system not in _WITHOUT_PERMISSIONS:
        if is_text(name, head):
            return Risk("scripts", "it is marked as executable")
        if formats.kind_of(name, head) == formats.BINARY and formats.binary_reason(head) == "binary":
            return Risk("programs", "it is marked as executable")
    return None


def is_text(name: str, head: bytes) -> bool:
    """Whether a file is text or source code, which a text editor opens without running it."""
    kind = _RISK_OF_ENDING.get(ending_of(name))
    named = formats.promised_kind(name)
    if kind not in (None, "scripts") and named not in _EDITED:
        return False
    return not formats.looks_binary(head, named_text=True) and formats.kind_of(name, head) in _EDITED


def mount_type(device: int, mounts: str) -> str:
    """The type of the file system on a device; `mounts` as /proc/self/mountinfo has it. "": it is not listed."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) > 3 and fields[2] == wanted and "-" in fields:
            return fields[fields.index("-") + 1]
    return ""


def ending_of(name: str) -> str:
    """The ending that counts, in lower case. Some systems drop dots and spaces at the end, none draws what is
    invisible."""
    visible = "".join(letter for letter in name if not is_invisible(letter)).rstrip()
    while visible.endswith("."):
        visible = visible.rstrip(".").rstrip()
    _, dot, ending = visible.rpartition(".")
    return (dot + ending).casefold()


def is_invisible(letter: str) -> bool:
    """Whether a character is not drawn as itself: controls, marks of direction, zero width, tags, variation selectors,
    what no character has been assigned to. Spaces of any width are drawn."""
    if letter in _BLANK or any(ord(letter) in some for some in _VARIATION_SELECTORS):
        return True
    return not letter.isprintable() and unicodedata.category(letter) != "Zs"


def has_control(path: str) -> bool:
    """Whether a path has a character that ends a line or moves a cursor: programs that are given it may read a second
    argument, or an address."""
    return any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in path)
