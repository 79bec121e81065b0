"""PDF through PDFium. It can abort or loop on a forged file, so this runs in a child process only."""

import re
from typing import Any

import pypdfium2  # type: ignore[import-untyped]

from foltr.node.extract.plain import clean, one_line
from foltr.node.extract.records import ExtractedDocument, Limits, Refused

PAGE_BREAK = "\n\f"  # so that a match is known to be on a page
_MISSING_PAGES = 20  # in a row: a forged number of pages
_USELESS = re.compile(r"(?i)^(?:untitled.*|microsoft word - .*|.*\.(?:docx?|tex|dvi|indd|pdf|rtf|odt|html?)|\W*|\d+)$")
_WORD = re.compile(r"[^\W\d_]{3,}")


def pdf_document(data: bytes, limits: Limits) -> ExtractedDocument:
    """The text of all pages; the title of its metadata, or its first line where that reads like a title."""
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as problem:
        if "password" in str(problem).lower():
            raise Refused("skipped", "encrypted") from None
        raise Refused("failed", f"damaged PDF ({problem})") from None
    try:
        pages, more = _pages(document, limits)
        title = one_line(document.get_metadata_value("Title"))
    finally:
        document.close()
    body = clean(PAGE_BREAK.join(pages))
    title = _first_line(body) if _USELESS.match(title) else title
    return ExtractedDocument(title, body, "pdf", truncated=more)


def _pages(document: Any, limits: Limits) -> tuple[list[str], bool]:
    """Texts of the pages, and whether there are more."""
    texts: list[str] = []  # "" for a page that cannot be loaded: later ones keep their numbers
    loaded, missing, left = 0, 0, limits.characters
    count = len(document)
    for number in range(min(count, limits.pages)):
        try:
            texts.append(_page_text(document, number, left + 1))
        except pypdfium2.PdfiumError:
            missing += 1
            if missing == _MISSING_PAGES:
                break
            texts.append("")
            continue
        loaded, missing = loaded + 1, 0
        left -= len(texts[-1])
        if left < 0:
            return texts, True
    if not loaded and count:
        raise Refused("failed", "damaged PDF (no page can be loaded)")
    return texts, count > limits.pages


def _page_text(document: Any, number: int, characters: int) -> str:
    page = document[number]
    try:
        text_page = page.get_textpage()
        try:
            count = min(text_page.count_chars(), characters)
            text = text_page.get_text_range(0, count) if count > 0 else ""
            return text.replace("\r\n", "\n").replace("\f", " ")
        finally:
            text_page.close()
    finally:
        page.close()


def _first_line(body: str) -> str:
    line = one_line(next((line for line in body[:2000].splitlines() if line.strip()), ""))
    return line if 8 <= len(line) <= 150 and len(_WORD.findall(line)) >= 2 else ""
