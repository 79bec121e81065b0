"""Texts made to cost more than linear time: long runs, things that are opened and never closed, alternations."""


def repeated(text):
    return lambda size: (text * (size // len(text) + 1))[:size]


def after(start, text):
    return lambda size: start + repeated(text)(size)


RUNS = {
    "marks": "\u0301", "marks out of order": "\u0301\u0323", "marks of four classes": "\u0345\u0301\u0327\u0334",
    "marks above U+FFFF": "\U0001d165\U0001d16d", "Hebrew points": "\u05b0\u05b1\u05c1\u05bf",
    "marks that look like letters": "\u0f73\u0301", "halfwidth marks": "\u0301\uff9e",
    "marks with joiners": "\u094d\u093c" * 15 + "\u200d", "marks with kashidas": "\u1dca\u0327" * 10 + "\u0640",
    "jamo": "\u1100\u1161\u11a8", "letters": "a", "capitals": "A", "camel": "aB", "long camel": "fooBarHTTP",
    "digits": "1", "superscripts": "²", "points and digits": "1.", "versions": "1.2", "bars": "_", "snakes": "foo_bar_",
    "spaces": " ", "tabs": "\t", "line ends": "\n", "both": " \n", "NUL": "\0", "escapes": "\x1b[", "Han": "検索語",
    "one Han": "検", "Thai": "ภาษาไทย", "Khmer": "ក្រុម", "two scripts": "a検",
    "three scripts": "aбא", "Han and bars": "検_",
    "directions": "\u202e\u202d", "letters and directions": "a\u200f", "families": "\U0001f468\u200d\U0001f469\u200d",
    "selectors": "\ufe0f", "soft hyphens": "a\u00ad", "long ligatures": "\ufdfa", "dotted capitals": "İ",
    "sharp s": "ß",
    "apostrophes": "'", "many 'a": "a'", "quotes": '"', "backslashes": "\\", "escaped quotes": '\\"', "query": "wait ",
    "query in one word": "wait", "query in camel": "Wait", "query and accents": "waité ", "query and Han": "wait検索",
    "accents": "é", "accents and bars": "_é", "accents after long words": "a" * 80 + "é", "full width": "Ａ",
}  # fmt: skip

MARKUP = {
    "brackets": "<", "div": "<div>", "bold": "<b>", "tables": "<table>", "rows": "<tr><td>", "paragraphs": "<p>",
    "fonts": "<font color=a><p>", "ruby": "<rt>", "list items": "<ul><li>", "comments": "<!--", "sections": "<![CDATA[",
    "ampersands": "&", "entities": "&amp;", "headings": "<h1>", "titles": "<title>", "pictures": "<svg>",
    "instructions": "<?xml ", "scripts": "<script>", "elements": "<a b='c'>", "objects": '{"cells":[',
}  # fmt: skip

PAGES = {
    "page bold and closed": lambda size: repeated("<b>")(size // 2) + repeated("</p>")(size // 2),
    "page attributes": lambda size: "<a " + "".join(f"a{n}=b " for n in range(size // 8)),
}

ROFF = {
    "fonts without end": "\\f[", "strings without end": "\\*[", "names without end": "\\[a", "sizes": "\\s[",
    "registers": "\\n[+", "widths": "\\h'", "definitions": ".de x\n", "ignored": ".ig\n", "sections": ".SH\n",
    "named sections": ".SH a\n", "dots": ".\n", "alternating": '.BR "', "indented": '.IP "a" ',
}  # fmt: skip

HEADERS = {
    "folded": "\n a", "parameters": "; a=b", "semicolons": ";", "boundaries": "boundary=a;", "encoded": "=?utf-8?q?a?=",
    "begun": "=?a?q?", "addresses": "a@b.c, ", "brackets": "<a@b>", "comments": "(", "borders": "\nFrom a 10:10 b\n",
    "parts": "--a\n", "headers": "a: b\n", "hexadecimal": "=41", "base64": "QUJD",
}  # fmt: skip

KEYS = {
    "private keys": "-----BEGIN PRIVATE KEY-----", "key headers": "-----BEGIN PRIVATE KEY-----a: \n",
    "key names": "-----BEGIN A ", "putty": "PuTTY-User-Key-File-1: ", "cloud": "AKIA", "tokens": "sk-",
    "chat": "xoxa-1",
}  # fmt: skip

TEXTS = {
    **{name: repeated(text) for table in (RUNS, MARKUP, ROFF, HEADERS, KEYS) for name, text in table.items()},
    **PAGES,
    "marks on a letter": after("a", "\u0345\u0301\u0327\u0334"),
    "spaces after a comment": after('\\"', " "),
    "spaces after a section": after(".SH", " "),
    "spaces between sections": lambda size: ".SH" + " " * size + "\n.SH",
    "definition without end": after(".ig\n", "x\n"),
    "definitions with one end": lambda size: repeated(".ig\n")(size) + "..",
    "key and its lines": after("-----BEGIN PRIVATE KEY-----", "a: b\n"),
    "key and nothing": after("-----BEGIN PRIVATE KEY-----", "\n"),
    "chat token": after("xoxa-", "1"),
    "one line": lambda size: "x" * size + "\n--",
    "accents after a name": after("a", "é_"),
}
