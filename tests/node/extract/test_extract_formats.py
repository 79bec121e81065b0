"""Each format gives its text and its title; the kind comes from the bytes where they contradict the name."""

import gzip

import pytest
from sample_files import ELF, MESSAGE, OLE, PNG, WORD, document_of, docx, epub, mbox, odt, pdf, result_of, zipped

from foltr.node.extract import Failure, kind_of

MAN = rb""".\" a comment
.TH LS 1 "June 2020" "GNU"
.de XX
nothing of this
..
.SH NAME
ls \- list directory \fBcontents\fR
.SH DESCRIPTION
.BR sort (1)
sorts; caf\('e, \(lqquoted\(rq, back\eslash.
.IP "\fB\-a\fR, all" 4
hidden too
"""
MDOC = b".Dd May 1, 2020\n.Dt CAT 1\n.Os\n.Sh NAME\n.Nm cat\n.Nd concatenate files\n.Sh SYNOPSIS\n.Op Fl u Ar file\n"


@pytest.mark.parametrize(
    ("name", "content", "kind", "title", "words"),
    [
        ("a.txt", b"plain words\n", "text", "", "plain words"),
        ("noending", b"plain words\n", "text", "", "plain words"),
        ("a.md", b"intro\n\n## The title ##\n\ntext", "markdown", "The title", "text"),
        ("b.md", b"Set title\n=========\n\ntext", "markdown", "Set title", "text"),
        ("c.md", b"---\ndate: x\ntitle: 'Front'\n---\n# Other\n", "markdown", "Front", "Other"),
        ("a.rst", b"Title here\n==========\n\ntext", "text", "Title here", "text"),
        ("a.py", b"def snake_case(): pass\n", "code", "", "snake_case"),
        ("script", b"#!/bin/sh\necho hello\n", "code", "", "echo hello"),
        ("n.ipynb", b'{"cells": [{"source": ["alpha\\n", "beta"], "outputs": ["gone"]}]}', "code", "", "alpha\nbeta"),
        ("a.html", b"<title> The\n title </title><p>one</p><p>two</p>", "html", "The title", "one two"),
        ("b.html", b"<h1>Head<i>ing</i></h1><p>H<sub>2</sub>O", "html", "Heading", "H2O"),
        ("c.html", b"<script>gone()</script><style>x{}</style><ul><li>a<li>b</ul>", "html", "", "a b"),
        ("d.html", b'<meta charset="iso-8859-1"><p>caf\xe9</p>', "html", "", "café"),
        ("page", b"<!-- c --><!DOCTYPE html><html><body>found</body></html>", "html", "", "found"),
        ("a.xml", b"<?xml version='1.0'?><book><para>one</para> <para>two</para></book>", "text", "", "one two"),
        ("a.pdf", pdf(["Quarterly numbers", "second page"], title="The report"), "pdf", "The report", "second page"),
        ("b.pdf", pdf(["Annual budget overview"], title="untitled"), "pdf", "Annual budget overview", "budget"),
        ("a.docx", docx(["First", "caf\u00e9 &amp; tea"], title="Core title"), "docx", "Core title", "café & tea"),
        ("a.odt", odt("Heading", ["one<text:tab/>two"], title="Meta title"), "odt", "Meta title", "one two"),
        ("b.odt", odt("Heading", ["one"]), "odt", "Heading", "Heading\none\n"),
        ("a.epub", epub("The book", ["chapter one", "chapter two"]), "epub", "The book", "chapter one\nchapter two"),
        ("ls.1", MAN, "man", "ls - list directory contents", "sort(1)"),
        ("ls.1.gz", gzip.compress(MAN), "man", "ls - list directory contents", "hidden too"),
        ("cat.1", MDOC, "man", "cat - concatenate files", "u file"),
        ("changelog.gz", gzip.compress(b"packed ") + gzip.compress(b"twice"), "text", "", "packed twice"),
        ("index.html.gz", gzip.compress(b"<title>T1 page</title><p>in</p>"), "html", "T1 page", "in"),
    ],
)  # fmt: skip
def test_text_and_title(tmp_path, name, content, kind, title, words):
    document = document_of(tmp_path, name, content)
    assert (document.kind, document.title) == (kind, title)
    assert words in document.body
    assert "gone" not in document.body
    assert not document.truncated


def test_roff_leaves_no_markup(tmp_path):
    body = document_of(tmp_path, "ls.1", MAN).body
    assert "“quoted”" in body
    assert "back\\slash" in body
    assert "-a, all\n" in body
    for markup in ("comment", "nothing", ".SH", "\\f", "\\-", '"'):
        assert markup not in body


def test_a_page_that_refers_to_another_is_skipped(tmp_path):
    assert result_of(tmp_path, "dir.1", b".so man1/ls.1\n") == Failure(
        "skipped", "refers to another manual page (man1/ls.1)"
    )


def test_titles_of_styled_paragraphs(tmp_path):
    heading = (
        f'<w:document {WORD}><w:body><w:p><w:pPr><w:pStyle w:val="Title"/></w:pPr><w:r><w:t>Styled</w:t></w:r></w:p>'
    )
    document = document_of(tmp_path, "a.docx", docx([], document=heading + "</w:body></w:document>"))
    assert (document.title, document.body) == ("Styled", "Styled\n")


def test_deleted_text_of_a_docx_is_left_out(tmp_path):
    inner = "<w:p><w:r><w:t>stays</w:t></w:r><w:del><w:r><w:delText>removed</w:delText></w:r></w:del></w:p>"
    content = docx([], document=f"<w:document {WORD}><w:body>{inner}</w:body></w:document>")
    assert document_of(tmp_path, "a.docx", content).body == "stays\n"


@pytest.mark.parametrize(
    ("name", "content", "state", "reason"),
    [
        ("picture.txt", PNG, "skipped", "binary: an image"),
        ("program.md", ELF, "skipped", "binary: a program"),
        ("archive.pdf", zipped({"a": "b"}), "skipped", "binary: an archive"),
        ("archive.docx", zipped({"a": "b"}), "failed", "a zip file without word/document.xml, hence no DOCX"),
        ("archive.odt", zipped({"a": "b"}), "failed", "a zip file without content.xml, hence no ODT"),
        ("archive.epub", zipped({"a": "b"}), "failed", "a zip file without a package file, hence no EPUB"),
        ("old.docx", OLE, "skipped", "binary: an old or encrypted Office document"),
        ("t.txt.gz", gzip.compress(PNG), "skipped", "binary: an image"),
        ("twice.gz", gzip.compress(gzip.compress(b"text")), "skipped", "binary: an archive in an archive"),
        ("cut.gz", gzip.compress(b"text " * 5000, mtime=0)[:-30], "failed", "a gzip file that ends early"),
        ("cut.docx", docx(["text"])[:-40], "failed", "a damaged zip file"),
        ("passwords.txt", b"\x03\xd9\xa2\x9a\x67\xfb\x4b\xb5" + bytes(80), "skipped", "a password database"),
    ],
)  # fmt: skip
def test_forged_and_damaged_files(tmp_path, name, content, state, reason):
    assert result_of(tmp_path, name, content) == Failure(state, reason, unnamed="password" in reason)


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("report.txt", pdf(["inside"]), "pdf"),
        ("letter.txt", epub("B", ["inside"]), "epub"),
        ("letter.dat", docx(["inside"]), "docx"),
        ("fake.pdf", b"inside, but no PDF at all", "text"),
        ("fake.docx", b"<html><body>inside", "html"),
        ("fake.eml", b"inside, and no header", "text"),
        ("BMW.txt", b"BM is how this begins, inside", "text"),
    ],
)
def test_content_decides_against_the_name(tmp_path, name, content, kind):
    document = document_of(tmp_path, name, content)
    assert document.kind == kind
    assert "inside" in document.body


@pytest.mark.parametrize(
    ("path", "head", "kind"),
    [
        ("mail/cur/1583.M1P2.host:2,S", MESSAGE, "mail"),
        ("a.eml", MESSAGE, "mail"),
        ("Inbox", mbox(MESSAGE), "mbox"),
        ("a.mbox", mbox(MESSAGE), "mbox"),
        ("notes.txt", MESSAGE, "text"),
        ("From a distance.txt", b"From a distance 10:20\nwords", "text"),
        (b"invalid\xff.py", b"x = 1", "code"),
        ("Makefile", b"all:\n\techo", "code"),
        ("README", b"words", "text"),
        ("empty.bin", b"", "text"),
    ],
)
def test_kinds(path, head, kind):
    assert kind_of(path, head) == kind


def test_comments_without_end_are_no_trap():
    assert kind_of("a", b"<!---->" * 1100) == "text"
