"""Manual pages: roff requests and escapes removed, the words kept. No formatter: tables and equations stay as typed."""

import re

from foltr.node.extract.plain import decode, one_line
from foltr.node.extract.records import ExtractedDocument, Limits, Refused

_COMMENT = re.compile(r'(?m)^[.\'][ \t]*\\["#].*\n|(?<![ \t])[ \t]*+\\".*$')
_DEFINITION = re.compile(r"(?m)^[.'][ \t]*(?:de1?|am1?|ig)\b[^\n]*\n")
_DEFINITION_END = re.compile(r"(?m)^\.\.[ \t]*$")
_DEFINITION_LINES = 2_000  # a longer one is text
_REQUEST = re.compile(r"(?m)^[.'][ \t]*(\w*)[ \t]*(.*)$")
_ESCAPE = re.compile(
    r"\\(?:f(?:\(..|\[[^\]\n]{0,200}\]|.)|s(?:[+-]?\d{1,2}|\(..|\[[^\]\n]{0,200}\])|"
    r"[nkgMmFY](?:[+-]?\(..|[+-]?\[[^\]\n]{0,200}\]|.)|"
    r"\*(?:\((..)|\[([^\]\n]{0,200})\]|(.))|\((..)|\[([^\]\n]{1,40})\]|[hvwlLDbNoxXZRA]'[^'\n]*'|([^\n]))"
)
_SECTION = re.compile(r"(?m)^\.S[hH][ \t]++[^\n]*+\n((?:(?!\.S[hHsS]\b)[^\n]*\n){1,12})")
_HEADER = re.compile(r'(?m)^\.(?:TH|Dt)[ \t]+"?([^\s"]+)')
_ELSEWHERE = re.compile(r"\A(?:[.'][ \t]*\\[\"#].*\n|\s)*\.so[ \t]+(\S+)")

# requests whose arguments are no text
_DROPPED = frozenset({
    "TH", "Dd", "Dt", "Os", "so", "mso", "nr", "ds", "rr", "rm", "as", "if", "ie", "el", "ad", "na", "hy", "nh",
    "ll", "lt", "in", "ti", "ta", "sp", "br", "nf", "fi", "ft", "fam", "ps", "vs", "ne", "bp", "pl", "ns", "rs",
    "ev", "di", "da", "cf", "ce", "hw", "hc", "ec", "eo", "cc", "c2", "tr", "char", "fchar", "do", "nx", "lf",
    "tm", "ab", "als", "rn", "Sp", "Vb", "Ve", "PP", "P", "LP", "RS", "RE", "TP", "HP", "PD", "UE", "ME", "TS",
    "TE", "EQ", "EN", "TQ", "EX", "EE", "YS", "Bd", "Ed", "Bl", "El", "Pp", "Lp", "Bk", "Ek", "Rs", "Re", "Sm",
    "an", "while", "break", "return", "it", "nop"
})  # fmt: skip
_ALTERNATING = frozenset(("BR", "RB", "BI", "IB", "IR", "RI"))  # arguments are printed without spaces
_MDOC = re.compile(
    r"(?<!\S)(?:Ac|Ad|An|Ao|Ap|Aq|Ar|Bc|Bo|Bq|Brc|Bro|Brq|Cd|Cm|Dl|Do|Dq|Dv|Em|Er|Ev|Fa|Fl|Fn|Ft|Ic|In|Lb|Li|Lk|Ms|"
    r"Mt|Nd|Nm|No|Ns|Oc|Oo|Op|Pa|Pc|Pf|Po|Pq|Qc|Ql|Qo|Qq|Sc|So|Sq|Sx|Sy|Ta|Tn|Ux|Va|Vt|Xc|Xo|Xr)(?!\S)[ \t]*"
)
_CHARACTERS = {
    "em": "—", "en": "–", "hy": "-", "mi": "-", "aq": "'", "dq": '"', "oq": "‘", "cq": "’", "lq": "“", "rq": "”",
    "bu": "•", "co": "©", "rg": "®", "tm": "™", "ha": "^", "ti": "~", "ga": "`", "at": "@", "sh": "#", "Do": "$",
    "rs": "\\", "sl": "/", "ba": "|", "br": "|", "ul": "_", "ru": "_", "<=": "≤", ">=": "≥", "!=": "≠", "->": "→",
    "<-": "←", "+-": "±", "mu": "×", "de": "°", "ss": "ß", "AE": "Æ", "ae": "æ", "OE": "Œ", "oe": "œ", "o/": "ø",
    "O/": "Ø", "oa": "å", "oA": "Å", "Po": "£", "Eu": "€", "sc": "§", "lB": "[", "rB": "]", "lC": "{", "rC": "}",
    "la": "⟨", "ra": "⟩", "Fo": "«", "Fc": "»",
}  # fmt: skip
_ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", ":": "\u0308", "~": "\u0303", ",": "\u0327"}
_SINGLE = {"e": "\\", "-": "-", " ": " ", "~": " ", "0": " ", "t": " ", "'": "'", "`": "`", ".": ".", "_": "_"}


def man_document(data: bytes, limits: Limits) -> ExtractedDocument:
    """A manual page as a document; its title is the line below NAME ("ls - list directory contents")."""
    source = decode(data[: 4 * limits.characters], cut=True)
    elsewhere = _ELSEWHERE.match(source[:4096])
    if elsewhere:
        raise Refused("skipped", f"refers to another manual page ({one_line(elsewhere[1], 100)})")
    name = _SECTION.search(source)
    header = _HEADER.search(source)
    mdoc = "\n.Nm" in source
    title = one_line(_words(name[1], mdoc=mdoc), 200) if name else ""
    return ExtractedDocument(title or (header[1] if header else ""), _words(source, mdoc=mdoc), "man")


def _words(source: str, *, mdoc: bool) -> str:
    """roff without its markup; mdoc is the macro set of BSD, whose macros call each other by name."""
    text = source.replace("\\\\", "\\e")
    if '\\"' in text or "\\#" in text:
        text = _COMMENT.sub("", text)
    if ".de" in text or ".ig" in text or ".am" in text:
        text = _without_definitions(text)
    for escape in ("\\fB", "\\fI", "\\fR", "\\fP", "\\f1", "\\f2", "\\f3", "\\&", "\\/", "\\,"):
        text = text.replace(escape, "")
    text = text.replace("\\-", "-")
    text = _REQUEST.sub(_mdoc_arguments if mdoc else _arguments, text)
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _without_definitions(text: str) -> str:
    """Removes macro definitions: from a `.de` line to the next `..` line. One without an end stays."""
    pieces: list[str] = []
    last = counted = lines = after = 0  # `lines` from `counted` to `end`
    end = -1
    for start in _DEFINITION.finditer(text):
        if start.start() < last:
            continue
        if end < start.end():
            closing = _DEFINITION_END.search(text, start.end())
            if closing is None:
                break
            end, after = closing.span()
            lines = text.count("\n", start.end(), end)
        else:  # the same end as before: no line is counted twice
            lines -= text.count("\n", counted, start.end())
        counted = start.end()
        if lines <= _DEFINITION_LINES:
            pieces.append(text[last : start.start()])
            last = after
    return "".join([*pieces, text[last:]])


def _arguments(request: re.Match[str]) -> str:
    name, arguments = request[1], request[2]
    if not arguments or name in _DROPPED:
        return ""
    if name in _ALTERNATING:
        if '"' not in arguments:
            return arguments.replace(" ", "")
        return "".join(piece if at % 2 else piece.replace(" ", "") for at, piece in enumerate(arguments.split('"')))
    if name in ("IP", "HP"):  # the last argument is an indentation
        arguments = arguments.rpartition('"')[0] or arguments.partition(" ")[0]
    return arguments.replace('"', "")


def _mdoc_arguments(request: re.Match[str]) -> str:
    name, arguments = request[1], request[2]
    if name in _DROPPED:
        return ""
    words = _MDOC.sub("", arguments).replace('"', "")
    return f"- {words}" if name == "Nd" else words


def _character(escape: re.Match[str]) -> str:
    string, long_string, _, character, long_character, single = escape.groups()
    if single is not None:
        return _SINGLE.get(single, "")
    name = character or long_character or string or long_string
    if not name:
        return ""
    if name in _CHARACTERS:
        return _CHARACTERS[name]
    if name[0] == "u" and 5 <= len(name) <= 7:
        return _code_point(name[1:])
    if len(name) == 2 and name[0] in _ACCENTS and name[1].isalpha():
        return name[1] + _ACCENTS[name[0]]  # combining: the analyser folds it
    return ""


def _code_point(digits: str) -> str:
    try:
        number = int(digits, 16)
    except ValueError:
        return ""
    return chr(number) if 32 <= number < 0xD800 or 0xE000 <= number <= 0x10FFFF else ""
