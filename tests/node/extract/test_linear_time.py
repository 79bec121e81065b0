"""No text costs more than linear time: four times the text, at most twelve times the processor time."""

import signal
import time
import unicodedata
from contextlib import contextmanager

import pytest
from hostile_texts import TEXTS
from sample_files import OFFICE, WORD, zipped

from foltr.node.extract import mail, man, markup, office, plain, secrets
from foltr.node.extract.formats import HEAD, kind_of
from foltr.node.extract.records import Limits, Refused
from foltr.node.learning import memory
from foltr.node.search import query, snippets
from foltr.text import analysis
from foltr.text.normalization import MAX_MARKS, normalize

LIMITS = Limits()
SIZE = 20_000  # characters; quadratic time is unmistakable at four times as many
FAST = 0.1  # seconds of processor time: below it the ratio says nothing
RATIO = 12.0  # quadratic time has 16, linear time 4
LATE = 10.0


def matcher():
    terms = [(("wait",), "wai"), (("検索",), "検索"), (("cafe",), ""), (("a",), "a"), (("absent",), "")]
    wanted = [snippets.Wanted(stems, beginning, 1.0) for stems, beginning in terms]
    return snippets.matcher(wanted, stem=lambda word: analysis.stem(analysis.fold(word)), fold=analysis.fold)


def as_bytes(function):
    return lambda text: function(text.encode("utf-8", "replace"))


def mail_with(start):
    return as_bytes(lambda data: mail.mail_document(start + data, LIMITS))


def names(text):
    return [kind_of(name, text.encode()[:HEAD]) for name in ("a", "a.txt", "a.1", "a.eml", "a.mbox", "a.xml", "a.pdf")]


def docx(text):
    return office.docx_document(zipped({"word/document.xml": f"<w:document {WORD}><w:p>{text}"}), LIMITS)


STAGES = {
    "words": analysis.words,
    "folding": analysis.fold,
    "words of a query": lambda text: analysis.query_words(text[: query.MAX_CHARACTERS], prefix=True),
    "query": query.parse,
    "typed text": memory.typed_text,
    "printable": snippets.printable,
    "escaped": snippets.escaped,
    "snippet": lambda text: snippets.best_snippet(text, matcher()),
    "highlights": lambda text: snippets.highlighted(snippets.printable(text), matcher()),
    "secrets": secrets.looks_secret,
    "kind": names,
    "markdown": as_bytes(lambda data: plain.text_document(data, "markdown", "a.md", LIMITS)),
    "underlined": as_bytes(lambda data: plain.text_document(data, "text", "a.rst", LIMITS)),
    "notebook": as_bytes(lambda data: plain.text_document(data, "code", "a.ipynb", LIMITS)),
    "man": as_bytes(lambda data: man.man_document(b".TH a\n" + data, LIMITS)),
    "mdoc": as_bytes(lambda data: man.man_document(b".Dt a\n.Nm\n.de x\n" + data, LIMITS)),
    "html": as_bytes(lambda data: markup.html_document(data, LIMITS)),
    "title of a page": as_bytes(lambda data: markup.html_document(b"<title>" + data, LIMITS)),
    "mail": mail_with(b"Subject: a\n\n"),
    "subject": mail_with(b"Subject: "),
    "kind of a mail": mail_with(b"Content-Type: "),
    "parts of a mail": mail_with(b"Content-Type: multipart/mixed; boundary=a\n\n--a\n"),
    "attachment": mail_with(b"Content-Disposition: attachment; filename="),
    "date": mail_with(b"Date: "),
    "quoted mail": mail_with(b"Content-Transfer-Encoding: quoted-printable\nContent-Type: text/html\n\n"),
    "docx": docx,
    "flat odt": as_bytes(lambda data: office.flat_odt_document(f"<a {OFFICE}><text:p>".encode() + data, LIMITS)),
}


class TooLate(BaseException):
    """Raised by the timer: what is measured is stopped."""


@contextmanager
def stopped_after(seconds):
    def stop(*_):
        raise TooLate

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def seconds(function, text):
    """Processor time; LATE where it is stopped."""
    began = time.process_time()
    try:
        with stopped_after(LATE):
            function(text)
    except Refused:
        pass
    except TooLate:
        return LATE
    return time.process_time() - began


def slow_texts(function, size):
    """{name: seconds} of the texts that take more than linear time."""
    assert seconds(function, "word") < LATE  # imports and tables
    found = {}
    for name, text in TEXTS.items():
        small = seconds(function, text(size))  # first: tokens of the larger text would be remembered
        spent = seconds(function, text(4 * size))
        if spent >= LATE or (spent > FAST and min(spent, seconds(function, text(4 * size))) > RATIO * small):
            found[name] = spent
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_no_text_takes_more_than_linear_time(stage):
    assert slow_texts(STAGES[stage], SIZE) == {}


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_no_long_text_takes_more_than_linear_time(stage):
    assert slow_texts(STAGES[stage], 6 * SIZE) == {}


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("size", [1, MAX_MARKS + 5, 3_000])
def test_normalisation_is_that_of_unicode_where_no_letter_has_too_many_marks(form, size):
    text = "".join("aé가ガ①ﬁ𝐀\U0001d15e"[n % 8] + "\u0323\u0301" * (n % 15) for n in range(size))
    assert normalize(form, text) == unicodedata.normalize(form, text)
    assert normalize(form, "a" + "\u0301" * 500) == unicodedata.normalize(form, "a" + "\u0301" * MAX_MARKS)
