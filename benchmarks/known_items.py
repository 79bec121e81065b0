"""Known-item queries over real files of this machine, drawn without the analyser of any search engine.

Files are copied as they are: manual pages (compressed roff, English and translated), HTML documentation, Python and
Perl sources, plain documents. Their text is what a person reads: roff through groff, HTML without its tags, the rest
as it stands. A word is a maximal run of letters between spaces or plain punctuation, so that no engine can join it to
what stands beside it. Queries are in small letters, as people type them:

    title     two to four words of a title, in their order (manual pages: the line below NAME; HTML: <title>)
    words     three words of an English text or source that at most one in 200 documents has
    language  the same of texts in other languages
    typo      `words` with an error in its longest word: two letters swapped, one left out or one replaced
    phrase    four words that stand one after the other, in quotes, one of them in at most one in 50 documents
    name      the name of a file without its endings, where no other file has it; every other one as words
    partial   two words of a longer name that stand one after the other, the second one perhaps unfinished
    unread    as `name`, of files that have no text: pictures, fonts, libraries, archives
"""

import gzip
import hashlib
import html.parser
import os
import re
import subprocess
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from foltr.rng import Stream, stream

KINDS = ("title", "words", "language", "typo", "phrase", "name", "partial", "unread")
LANGUAGES = ("de", "fr", "es", "pl", "ru", "it", "pt", "nl")  # whose words are written with spaces between them
SHARES = {"man": 800, "man, translated": 2_000, "html": 2_500, "source": 1_500, "text": 400, "unread": 2_000}  # files
_FAMILY = 100  # files of one sort whose names begin with the same word
_LARGEST = 4_000_000  # bytes of a copy
_SHORTEST, _LONGEST = 50, 200_000  # words, and characters that queries are drawn from
_WORD = re.compile(r"(?<![^\s(\[\"'“„«])[^\W\d_]{2,}(?![^\s.,;:!?)\]\"'”“»])")
_UNREAD = (".png", ".svgz", ".gif", ".jpg", ".ttf", ".otf", ".so", ".whl", ".mo", ".zip", ".xz", ".exe", ".ico", ".db")
_ROFF = ["groff", "-K", "utf8", "-mandoc", "-Tutf8", "-P-cbou", "-rLL=1000n", "-rHY=0"]


class Text(NamedTuple):
    path: str  # below the folder of copies
    sort: str  # of SHARES
    language: str
    title: str
    body: str


class Known(NamedTuple):
    """A query for one document."""

    kind: str
    text: str
    target: str


def collect(folder: Path, *, scale: float, seed: int, half: int | None = None) -> list[Text]:
    """Copies files of this machine below a folder, no content twice, and returns their texts. `half` 0 or 1 takes half
    of the folders, so that what was tried on one half is claimed on the other."""
    seen: set[str] = set()
    texts: list[Text] = []
    for sort, (roots, fits, read) in SORTS.items():
        every = {path for root in roots for path in Path(root).rglob("*") if fits(path) and path.is_file()}
        files = sorted(str(path) for path in every if half is None or zlib.crc32(str(path.parent).encode()) % 2 == half)
        order = stream(seed, client=len(texts), purpose="data").permutation(len(files))
        families: Counter[tuple[str, str]] = Counter()
        taken = 0
        for name in (files[place] for place in order):
            family = str(Path(name).parent), re.split(r"[-_.:]", Path(name).name)[0]
            if taken == round(scale * SHARES[sort]) or families[family] == _FAMILY:
                continue
            text = _text(Path(name), sort, read, seen)
            if text:
                families[family] += 1
                taken += 1
                _copy(Path(name), folder / text.path)
                texts.append(text)
    return texts


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes()[:_LARGEST])


def _text(path: Path, sort: str, read: Callable[[bytes], tuple[str, str]], seen: set[str]) -> Text | None:
    """A file's text; None for short ones, for unreadable ones and for a content that was there before."""
    try:
        content = path.read_bytes()
        title, body = read(gzip.decompress(content) if path.suffix == ".gz" else content)
    except (OSError, EOFError, UnicodeDecodeError, subprocess.SubprocessError):
        return None
    digest = hashlib.sha256(" ".join(body.split()).encode()).hexdigest()
    if (len(body.split()) < _SHORTEST and sort != "unread") or digest in seen:
        return None
    if sort != "unread":
        seen.add(digest)
    # without hidden folders, which a node leaves out
    visible = "/".join(part.lstrip(".") for part in str(path).strip("/").split("/"))
    return Text(visible, sort, _language(path), title, body[:_LONGEST])


def _language(path: Path) -> str:
    """By a folder of the path such as de or pt-BR; English where there is none."""
    for part in path.parts[:-1]:
        if re.fullmatch(r"[a-z]{2}([-_][A-Z]{2})?", part):
            return part[:2]
    return "en"


def _manual(content: bytes) -> tuple[str, str]:
    """The line below the first heading (NAME, in any language), and the formatted page."""
    if content.startswith(b".so "):
        return "", ""
    shown = subprocess.run(_ROFF, input=content, capture_output=True, timeout=60, check=True).stdout.decode("utf-8")
    lines = [line for line in shown.splitlines() if line.strip()][1:]  # the first is the header of the page
    title = next((line.strip() for line in lines if line.startswith(" ")), "")
    return title, shown.replace("\u2010", "-")


class _Page(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.title, self.body, self.inside = "", [""], ""

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self.inside = tag if tag in ("title", "script", "style") else self.inside
        self.body.append(" ")

    def handle_endtag(self, tag: str) -> None:
        self.inside = "" if tag == self.inside else self.inside
        self.body.append(" ")

    def handle_data(self, data: str) -> None:
        if self.inside == "title":
            self.title += data
        elif not self.inside:
            self.body.append(data)


def _page(content: bytes) -> tuple[str, str]:
    page = _Page()
    page.feed(content.decode("utf-8"))
    return " ".join(page.title.split()), "".join(page.body)


def _unread(content: bytes) -> tuple[str, str]:  # noqa: ARG001
    return "", ""


def _is_unread(path: Path) -> bool:
    return path.suffix in _UNREAD and not path.is_symlink()


def _plain(content: bytes) -> tuple[str, str]:
    return "", content.decode("utf-8")


def _is_manual(path: Path) -> bool:
    return path.parent.name.startswith("man") and path.name.endswith(".gz")


def _is_document(path: Path) -> bool:
    return path.suffix in (".txt", ".md", ".rst") or path.name.startswith(("README", "NEWS", "FAQ"))


_MAN, _DOC, _PYTHON = "/usr/share/man", "/usr/share/doc", str(Path(os.__file__).parent)
Read = Callable[[bytes], tuple[str, str]]
# sort -> folders, which files, how their text is read
SORTS: dict[str, tuple[tuple[str, ...], Callable[[Path], bool], Read]] = {
    "man": (tuple(f"{_MAN}/man{section}" for section in range(1, 9)), _is_manual, _manual),
    "man, translated": (tuple(f"{_MAN}/{name}" for name in LANGUAGES), _is_manual, _manual),
    "html": ((_DOC,), lambda path: path.suffix in (".html", ".htm"), _page),
    "source": ((_PYTHON, "/usr/share/perl"), lambda path: path.suffix in (".py", ".pm", ".pl"), _plain),
    "text": ((_DOC, _PYTHON), _is_document, _plain),
    "unread": (("/usr/share", "/usr/lib", _PYTHON), _is_unread, _unread),
}


def draw(texts: list[Text], count: int, *, seed: int) -> list[Known]:
    """`count` queries of each kind where there are so many, of documents that the seed draws."""
    words = [_WORD.findall(text.body) for text in texts]
    frequency = Counter(word for found in words for word in {word.lower() for word in found})
    names = Counter(_stem(text.path) for text in texts)
    queries = []
    for number, kind in enumerate(KINDS):
        draws = stream(seed, round=number + 1, purpose="queries")
        order = draws.permutation(len(texts))
        made = 0
        for place in order:
            own = stream(seed, round=number + 1, client=int(place) + 1, purpose="queries")
            query = _query(kind, texts[place], words[place], Frequencies(frequency, names, len(texts)), own)
            if query and made < count:
                queries.append(Known(kind, query, texts[place].path))
                made += 1
    return queries


class Frequencies(NamedTuple):
    words: Counter[str]  # documents with each
    names: Counter[str]  # files of each
    documents: int


def _query(kind: str, text: Text, found: list[str], known: Frequencies, draws: Stream) -> str:
    """A query of a kind for a document, or "" where it gives none."""
    english = text.language == "en"
    if kind == "title":
        title = [word.lower() for word in _WORD.findall(text.title) if len(word) > 2]
        wanted = 2 + int(draws.integers(3, 1)[0])
        return " ".join(title[:wanted]) if len(title) >= 2 else ""
    if kind in ("name", "unread"):
        stem = _stem(text.path)
        typed = " ".join(re.split(r"[-_ ]+", stem)).strip() if draws.integers(2, 1)[0] else stem
        fits = known.names[stem] == 1 and len(stem) > 2 and (text.sort == "unread") == (kind == "unread")
        return typed if fits else ""
    if text.sort == "unread":
        return ""
    if kind == "partial":
        return _partial(_stem(text.path), draws)
    if kind == "phrase":
        return _phrase(text.body, known, draws)
    if kind == "language":
        return " ".join(_rare(found, known, draws)) if text.language in LANGUAGES else ""
    rare = _rare(found, known, draws) if english else []
    return " ".join(_misspelt(rare, draws.skip(3)) if kind == "typo" and rare else rare)


def _stem(path: str) -> str:
    return Path(path).name.split(".")[0]


def _partial(stem: str, draws: Stream) -> str:
    """Two words of a name of three or more, or the last two of two, of which the last is cut."""
    parts = [part for part in re.split(r"[-_]+", stem) if part]
    if len(parts) < 2 or min(map(len, parts)) < 2:
        return ""
    place = int(draws.integers(len(parts) - 1, 1)[0])
    first, last = parts[place : place + 2]
    cut = last[: 1 + int(draws.skip(1).integers(len(last), 1)[0])]
    if len(parts) == 2 and cut == last:
        cut = last[:-1]
    return first + "- "[int(draws.skip(2).integers(2, 1)[0])] + cut


def _rare(found: list[str], known: Frequencies, draws: Stream) -> list[str]:
    """Three different words of a text that few documents have; fewer words than three give none."""
    limit = max(2, known.documents // 200)
    rare = sorted({word.lower() for word in found if len(word) > 3 and known.words[word.lower()] <= limit})
    if len(rare) < 3:
        return []
    return [rare[place] for place in sorted(draws.permutation(len(rare))[:3])]


def _misspelt(query: list[str], draws: Stream) -> list[str]:
    """An error in the middle of the longest word: two letters swapped, one left out, or one replaced."""
    word = max(query, key=len)
    place, way = 1 + int(draws.integers(len(word) - 2, 1)[0]), int(draws.skip(1).integers(3, 1)[0])
    swapped = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    shorter = word[:place] + word[place + 1 :]
    replaced = word[:place] + ("e" if word[place] != "e" else "a") + word[place + 1 :]
    wrong = (swapped if swapped != word else shorter, shorter, replaced)[way]
    return [wrong if one == word else one for one in query]


def _phrase(body: str, known: Frequencies, draws: Stream) -> str:
    limit = max(2, known.documents // 50)
    lines = list(_runs(body))
    for place in draws.permutation(len(lines))[:200]:
        if any(len(word) > 3 and known.words[word] <= limit for word in lines[place]):
            return '"' + " ".join(lines[place]) + '"'
    return ""


def _runs(body: str) -> Iterator[list[str]]:
    """Four words with nothing but one space between them."""
    for found in re.finditer(r"(?<!\S)((?:[^\W\d_]{2,} ){3}[^\W\d_]{2,})(?![^\s.,;:!?])", body):
        yield found[1].lower().split()
