"""Signs that a file would run, launch or install something when it is opened, or that its name hides what it is.

A search shows what somebody may have sent by mail or left in a download folder, and a title says nothing about what a
file does. So a file is opened only when nothing about it says that it would be executed: not its permissions, not its
ending, not its first bytes, and when its name is what a person sees. Endings of other systems are in the list too:
folders are shared between machines, and desktops start programs for foreign formats.

HTML, PDF, EPUB and office files without macros are documents and are opened. Web archives are not: `.webarchive` runs
scripts as if they came from any site, and word processors run macros of `.mht`.
"""

import os
import stat
import unicodedata

_LAUNCHERS = """
    .desktop .directory .kdelnk .lnk .url .website .webloc .inetloc .fileloc .afploc .ftploc .httploc .mailloc .newsloc
    .telnetloc .vncloc .rtsploc .scf .appref-ms .library-ms .search-ms .searchconnector-ms .settingcontent-ms .service
    .action .theme .themepack .deskthemepack .job .msc .diagcab .diagcfg .diagpkg .rdp .rdg .ica .vnc .nxs .remmina
    .udl .prf .shortcut .alfredworkflow .plasmoid .nemo_action .caction .definition .sfm .qtl
"""
_PROGRAMS = """
    .exe .com .scr .pif .msi .msp .mst .msu .dll .cpl .sys .drv .ocx .xll .wll .app .appimage .bin .run .out .elf .so
    .dylib .bundle .o .ko .kext .jar .jnlp .air .swf .xbap .application .manifest .vsto .osax .prefpane .saver
    .qlgenerator .mdimporter .component .plugin .wdgt .chm .hlp
"""
_PACKAGES = """
    .deb .udeb .rpm .snap .flatpak .flatpakref .flatpakrepo .ymp .apk .ipa .pkg .mpkg .dmg .iso .img .vhd .vhdx .xpi
    .crx .safariextz .oxt .vsix .whl .egg .gem .nupkg .reg .msix .msixbundle .appx .appxbundle .appinstaller
    .mobileconfig .mobileprovision .provisionprofile .sketchplugin .webarchive .mht .mhtml
"""
_SCRIPTS = """
    .sh .bash .zsh .fish .csh .ksh .tcsh .command .tool .bat .cmd .ps1 .ps1xml .psm1 .psd1 .psc1 .cdxml .vb .vbs .vbe
    .js .jse .mjs .cjs .ws .wsc .wsf .wsh .sct .shb .shs .hta .py .pyw .pyc .pyo .pyz .pyzw .pl .rb .php .lua .tcl .awk
    .scpt .scptd .applescript .workflow .wflow .terminal .gadget .inf .ipynb .r .jl .groovy .ahk .au3
"""
_MACROS = """
    .docm .dotm .xlsm .xltm .xlsb .xlam .xla .xlm .xlw .pptm .potm .ppam .ppa .ppsm .sldm .slk .iqy .oqy .rqy .dqy .odc
    .mdb .mda .mde .accdb .accde .accda .accdr .ade .adp .wiz
"""
LAUNCHABLE = frozenset(f"{_LAUNCHERS} {_PROGRAMS} {_PACKAGES} {_SCRIPTS} {_MACROS}".split())

_MAGIC = (
    b"#!",
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
_EXECUTABLE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH

# letters, marks and symbols that are drawn as nothing; those of the categories Cc and Cf are not printable anyway
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
_VARIATION_SELECTORS = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))


def reason_to_reveal(name: str, status: os.stat_result, head: bytes) -> str | None:
    """Why a file is only shown in its folder; None when it may be opened. `head` is the beginning of its content."""
    if not stat.S_ISREG(status.st_mode):
        return "it is no regular file"
    if any(map(is_invisible, name)) or name != name.rstrip():
        return "its name has characters that are not seen, so that it may look like another kind of file"
    if status.st_mode & _EXECUTABLE:
        return "it is marked as executable"
    if (ending := ending_of(name)) in LAUNCHABLE:
        return f"files with the ending {ending} may run as a program"
    if head.startswith(_MAGIC):
        return "it begins as a program or a script does"
    if any(section in head for section in _LAUNCHER_SECTIONS):
        return "it is a launcher"
    return None


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
