"""Bytes in any encoding become text without control characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_files import document_of, result_of

from foltr.node.extract import Failure, Limits
from foltr.node.extract.plain import clean, decode

WORDS = "naïve café, Überraschung"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (WORDS.encode("utf-8"), WORDS),
        (WORDS.encode("utf-8-sig"), WORDS),
        (WORDS.encode("utf-16"), WORDS),
        (WORDS.encode("utf-32"), WORDS),
        (WORDS.encode("utf-16-le"), WORDS),
        (WORDS.encode("utf-16-be"), WORDS),
        (WORDS.encode("latin-1"), WORDS),
        ("“quoted” €".encode("cp1252"), "“quoted” €"),
        ("Привет, 世界".encode(), "Привет, 世界"),
        (("é" * 50).encode() + b"\xff broken", "é" * 50 + "\ufffd broken"),
        (b"stray nul \0 here " + b"words " * 20, "stray nul   here " + "words " * 20),
        (b"red \x1b[31m and bell \x07", "red  [31m and bell  "),
        (b"\x81\x8d\x8f\x90\x9d undefined", "\ufffd\ufffd\ufffd\ufffd\ufffd undefined"),
        (b"", ""),
        (b"\xff\xfe", ""),
        (b"\xef\xbb\xbf", ""),
        (WORDS.encode("utf-16")[:-1], WORDS[:-1] + "\ufffd"),
    ],
)
def test_encodings(tmp_path, content, text):
    assert document_of(tmp_path, "a.txt", content).body == text


@pytest.mark.parametrize("content", [bytes(1000), b"text \0\0\0\0" * 100, bytes(range(256)) * 4, b"\1\2\3\4" * 50])
def test_binaries_called_text(tmp_path, content):
    assert result_of(tmp_path, "a.txt", content) == Failure("skipped", "binary")


@pytest.mark.parametrize(
    "declared", ["rot13", "base64", "zlib", "no such", "a\0b", "ä", "idna", "punycode", "unicode_escape"]
)
@pytest.mark.parametrize("content", [b"words", b"caf\xe9 \xff\\ud800"])
def test_a_declared_encoding_is_only_a_claim(declared, content):
    text = decode(content, declared)
    assert text.encode("utf-8").decode("utf-8") == text


@given(st.binary(max_size=300), st.sampled_from([None, "utf-8", "utf-7", "utf-16", "latin-1", "shift_jis", "koi8-r"]))
def test_all_bytes_become_text_that_can_be_stored(content, declared):
    text = decode(content, declared)
    assert text.encode("utf-8").decode("utf-8") == text
    assert clean(text) == text
    assert not any(ord(character) < 32 and character not in "\t\n\r\f\v" for character in text)


def test_long_texts_are_cut_between_characters(tmp_path):
    document = document_of(tmp_path, "a.txt", "ä€😀".encode() * 5000, limits=Limits(characters=1000))
    assert document.body == ("ä€😀" * 400)[:1000]
    assert document.truncated


def test_a_text_of_exactly_the_limit_is_whole(tmp_path):
    document = document_of(tmp_path, "a.txt", b"x" * 1000, limits=Limits(characters=1000))
    assert (len(document.body), document.truncated) == (1000, False)
