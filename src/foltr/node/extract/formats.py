"""The kind of a file, from its ending and from its first bytes; where they disagree, the bytes decide.

A kind is what a search can filter by (`type:pdf`). Content that is no text and no document is "binary", whatever its
name says: a picture called notes.txt is not indexed, a PDF called notes.txt is read as a PDF.
"""

import os
import re

HEAD = 8192  # bytes of a file that decide about its kind

KINDS = ("text", "markdown", "html", "pdf", "docx", "odt", "epub", "code", "man", "mail")  # of documents
NAME_KINDS = ("image", "sound", "video", "archive", "program", "office", "font", "data", "file")  # of other files
BINARY = "binary"

_ENDINGS = {
    "markdown": "md markdown mdown mkd",
    "html": "html htm xhtml xht shtml",
    "xml": "xml fodt svg docbook dbk rss atom opml fb2 xsl xslt xsd",  # text between tags
    "pdf": "pdf",
    "docx": "docx docm dotx",
    "odt": "odt ott",
    "epub": "epub",
    "mail": "eml",
    "mbox": "mbox mbx",
    "text": "txt text rst adoc asciidoc org tex ltx bib texi texinfo info pod log csv tsv srt vtt nfo diff patch "
    "copyright debian po pot me 1st",
    "code": "py pyi pyx pxd ipynb c h cc cpp cxx hh hpp hxx inl m mm cs java kt kts scala groovy gradle clj cljs edn "
    "go rs swift d zig nim v sv vhd vhdl js mjs cjs jsx ts tsx vue svelte css scss sass less php rb erb pl pm t tcl "
    "lua r rmd jl hs lhs ml mli fs fsx fsi elm ex exs erl hrl lisp lsp cl el scm rkt sml f f77 f90 f95 f03 for pas "
    "pp ada adb ads asm s bas vb vbs ps1 psm1 bat cmd sh bash zsh fish ksh csh awk sed sql proto thrift graphql "
    "json jsonl ndjson json5 yaml yml toml ini cfg conf properties cmake mk mak am ac m4 in bzl nix tf hcl dart "
    "cu cuh cl glsl vert frag wgsl hlsl cocci xs y l ll td qml ui pro desktop service",
}
_KIND_OF_ENDING = {ending: kind for kind, endings in _ENDINGS.items() for ending in endings.split()}
# endings of files whose names alone are indexed: nothing reads a text from them
_NAME_ENDINGS = {
    "image": "png jpg jpeg gif bmp tif tiff webp ico heic heif avif psd xcf raw cr2 cr3 nef arw dng orf eps ai kra jp2 "
    "tga pcx ppm pgm pbm xpm icns",
    "sound": "mp3 flac ogg oga opus wav m4a m4b aac wma mid midi aif aiff amr ape",
    "video": "mp4 mkv avi mov webm wmv m4v mpg mpeg ogv flv 3gp vob mts m2ts",
    "archive": "zip tar tgz tbz2 txz bz2 xz zst 7z rar lz4 lz lzma cab deb rpm apk iso img dmg jar war ear whl egg "
    "cpio vmdk qcow2 vdi snap flatpak xpi crx",
    "program": "exe dll so dylib bin msi appimage wasm node pyd com sys",
    "office": "doc dot xls xlsx xlsm xlsb ods ots ppt pptx pptm pps ppsx odp odg rtf pages numbers key vsd vsdx pub "
    "one mpp",
    "font": "ttf otf ttc woff woff2 eot pfb pfm",
    "data": "db sqlite sqlite3 sqlite-wal mdb accdb npy npz h5 hdf5 parquet feather arrow pkl pickle pt pth onnx "
    "safetensors gguf tflite mo nbi nbc swf blend stl fbx glb obj mat rdata rds sav dta dat gresource",
}
_NAME_KIND_OF_ENDING = {ending: kind for kind, endings in _NAME_ENDINGS.items() for ending in endings.split()}
# of these endings some files are texts: they are looked into before their name alone is indexed
_PERHAPS_TEXT = frozenset(
    ("rtf", "eps", "ai", "key", "pub", "one", "dat", "bin", "raw", "com", "sys", "obj", "mat", "ppm", "pgm", "pbm",
     "xpm", "numbers", "pages")
)  # fmt: skip
_KIND_OF_NAME = {
    "makefile": "code", "dockerfile": "code", "cmakelists.txt": "code", "rakefile": "code", "gemfile": "code",
    "justfile": "code", "meson.build": "code", "readme": "text", "license": "text", "copying": "text",
    "changelog": "text", "authors": "text", "news": "text", "copyright": "text",
}  # fmt: skip

_MAGIC = (
    (b"\x89PNG\r\n", "an image"), (b"\xff\xd8\xff", "an image"), (b"GIF8", "an image"), (b"BM", "an image"),
    (b"II*\0", "an image"), (b"MM\0*", "an image"), (b"8BPS", "an image"), (b"\0\0\1\0", "an image"),
    (b"\x7fELF", "a program"), (b"MZ", "a program"), (b"\xca\xfe\xba\xbe", "a program"),
    (b"\xcf\xfa\xed\xfe", "a program"),
    (b"\0asm", "a program"), (b"!<arch>\n", "an archive"), (b"PK\3\4", "an archive"), (b"PK\5\6", "an archive"),
    (b"\x1f\x8b", "an archive"), (b"BZh", "an archive"), (b"\xfd7zXZ\0", "an archive"), (b"7z\xbc\xaf", "an archive"),
    (b"Rar!", "an archive"), (b"\x28\xb5\x2f\xfd", "an archive"), (b"ID3", "sound"), (b"OggS", "sound or video"),
    (b"fLaC", "sound"), (b"RIFF", "sound or video"), (b"\x1aE\xdf\xa3", "sound or video"),
    (b"SQLite format 3\0", "a database"), (b"\xd0\xcf\x11\xe0", "an old or encrypted Office document"),
    (b"wOFF", "a font"), (b"wOF2", "a font"), (b"OTTO", "a font"), (b"\0\1\0\0", "a font"),
    (b"\xde\x12\x04\x95", "a message catalog"), (b"\x95\x04\x12\xde", "a message catalog"),
    (b"bplist00", "a property list"),
)  # fmt: skip
# a beginning of two or three plain letters may as well be prose ("BMW", "MZ is ..."): then control bytes decide
_PLAIN_MAGIC = (b"BM", b"MZ", b"ID3", b"GIF8", b"RIFF", b"OggS", b"fLaC", b"Rar!", b"8BPS", b"BZh", b"OTTO", b"wOFF",
                b"wOF2")  # fmt: skip
_CERTAIN_MAGIC = tuple(magic for magic, _ in _MAGIC if magic not in _PLAIN_MAGIC)
PASSWORD_DATABASES = (b"\x03\xd9\xa2\x9a", b"PWS3")  # KeePass, Password Safe

_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + b"\x7f"
_HEADER = re.compile(rb"(?im)^(received|return-path|delivered-to|message-id|date|from|to|cc|subject|mime-version|"
                     rb"content-type|x-[a-z-]+|reply-to|sender|list-[a-z]+|dkim-signature):[ \t]")  # fmt: skip
_POSTMARK = re.compile(rb"From [^\r\n]*\d\d:\d\d[^\r\n]*+\r?\n[!-9;-~]++:")  # first line of a message in an mbox
_ROFF = re.compile(rb"(?m)^[.'](?:TH|Dd|SH|Sh|so|mso)[ \t]")
_SECTION = re.compile(r"\.[0-9][a-z]*(?:\.gz)?$")
_MARKUP = re.compile(rb"(?is)^\s*(?:<\?xml[^>]*>\s*)?(?>(?:<!--.*?-->\s*)*+)<(?:!doctype\s+html|html|head|body)[\s>]")


def kind_of(path: str | bytes | os.PathLike[str], head: bytes) -> str:
    """One of KINDS, or "mbox", "xml", "gzip", "secret" or "binary"."""
    name = os.fsdecode(path)
    ending = promised_kind(name)
    if head.startswith(PASSWORD_DATABASES):
        return "secret"
    if b"%PDF-" in head[:1024]:
        return "pdf"
    if head.startswith(b"PK\3\4"):
        return _zip_kind(ending, head)
    if head.startswith(b"\x1f\x8b\x08"):
        return "gzip"
    if looks_binary(head, named_text=ending is not None):
        return BINARY
    return _text_kind(name, ending, head)


def kind_of_name(name: str) -> str:
    """The kind of a file of which only the name is known: what its ending promises, one of KINDS or NAME_KINDS."""
    kind, ending = promised_kind(name), _ending(name.lower())
    if ending == "gz" and kind is None:
        return "man" if _SECTION.search(name) else "archive"
    return {"mbox": "mail", "xml": "text", None: _NAME_KIND_OF_ENDING.get(ending, "file")}.get(kind, kind) or "file"


def without_text(name: str) -> str | None:
    """The kind of a file that is not read, because its ending promises no text; None: it is to be read."""
    ending = _ending(name.lower())
    return None if ending in _PERHAPS_TEXT else _NAME_KIND_OF_ENDING.get(ending)


def _ending(lower: str) -> str:
    return lower.rpartition(".")[2] if "." in lower else ""


def binary_reason(head: bytes) -> str:
    """Describes a binary file in words."""
    found = next((what for magic, what in _MAGIC if head.startswith(magic)), None)
    return f"binary: {found}" if found else "binary"


def looks_binary(head: bytes, *, named_text: bool = False) -> bool:
    """Whether bytes are no text in any encoding that is read; a text's name allows for a few stray NUL bytes."""
    if head.startswith(_CERTAIN_MAGIC):
        return True
    if not head or head.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")) or utf16_order(head):
        return False
    if head[257:262] == b"ustar":
        return True
    nuls = head.count(0)
    if nuls and not (named_text and nuls * 50 < len(head)):
        return True
    return (len(head) - len(head.translate(None, _CONTROLS))) * 20 > len(head)


def utf16_order(head: bytes) -> str | None:
    """The byte order of UTF-16 without a mark: most characters of most texts are below 256."""
    units = len(head) // 2
    first, second = head[: 2 * units : 2], head[1 : 2 * units : 2]
    for order, low, high in (("utf-16-le", first, second), ("utf-16-be", second, first)):
        if units >= 2 and high.count(0) * 10 >= units * 7 and len(low.translate(None, _CONTROLS)) * 20 >= units * 19:
            return order
    return None


def promised_kind(name: str) -> str | None:
    """The kind that a file's name promises; None: it promises nothing."""
    last = name.rpartition("/")[2].lower()
    last = last.removesuffix(".gz")
    return _KIND_OF_NAME.get(last) or _KIND_OF_ENDING.get(last.rpartition(".")[2] if "." in last else "")


def _zip_kind(ending: str | None, head: bytes) -> str:
    mimetype = head[30:120] if head[26:28] == b"\x08\0" else b""  # name of the first member is 8 bytes long
    if mimetype.startswith(b"mimetypeapplication/epub+zip"):
        return "epub"
    if mimetype.startswith(b"mimetypeapplication/vnd.oasis.opendocument.text"):
        return "odt"
    if ending in ("docx", "odt", "epub"):
        return ending
    return "docx" if b"[Content_Types].xml" in head and b"word/" in head else BINARY


def _text_kind(name: str, ending: str | None, head: bytes) -> str:
    if _SECTION.search(name) and _ROFF.search(head):
        return "man"
    if ending in ("mbox", "mail", None):
        if _POSTMARK.match(head):
            return "mbox"
        if ending is not None or len(_HEADER.findall(head[:4096])) >= 3:
            return "mail" if _HEADER.match(head) else "text"
    if ending in ("pdf", "docx", "odt", "epub"):  # the bytes are none of it
        return "html" if _MARKUP.match(head) else "text"
    if ending in (None, "text", "xml") and _MARKUP.match(head):
        return "html"
    if ending is None and head.startswith(b"#!"):
        return "code"
    return ending or ("xml" if head.startswith(b"<?xml") else "text")
