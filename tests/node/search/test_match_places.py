"""A file opens where the words of the query are: the page of a PDF, the line of a text."""

import pytest

from foltr.node.search.ranking import key_of


def pdf(pages):
    """A PDF with a line of text on every page; None: a page that cannot be loaded."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    numbers = []
    for text in pages:
        numbers.append(len(objects) + 1)
        if text is None:
            objects.append("null")
            continue
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects) + 2} 0 R "
            "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    kids = " ".join(f"{number} 0 R" for number in numbers)
    objects[1] = f"<< /Type /Pages /Kids [{kids}] /Count {len(numbers)} >>"
    content, places = b"%PDF-1.4\n", []
    for number, text in enumerate(objects, start=1):
        places.append(len(content))
        content += f"{number} 0 obj\n{text}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\n"
    )
    return content + f"{end}startxref\n{len(content)}\n%%EOF\n".encode()


def place(node, query):
    results = node.search(query)
    file = node.file_to_open(key_of(node.known_list(results).page.documents[0]), query)
    return file.page, file.line


@pytest.mark.parametrize(("query", "page"), [("apple", 1), ("pear", 2), ("quince", 4), ("plum quince", 4)])
def test_the_page_of_a_pdf_is_that_of_the_passage(query, page, node_of, folder):
    (folder / "fruit.pdf").write_bytes(
        pdf(["the apple", "the pear and a plum", "filler " * 50, "the quince and a plum"])
    )
    assert place(node_of(), query) == (page, None)


def test_pages_that_are_empty_or_cannot_be_loaded_are_counted(node_of, folder):
    (folder / "fruit.pdf").write_bytes(pdf(["the apple", None, "", "the quince"]))
    assert place(node_of(), "quince") == (4, None)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_line_of_a_text_is_that_of_the_passage(end, node_of, folder):
    lines = ["filler"] * 40 + ["an apple"] + ["filler"] * 20_000 + ["a pe\u0301ar, dec\u0327omposed", "a quince"]
    (folder / "fruit.py").write_bytes(end.join(lines).encode())
    node = node_of()
    assert place(node, "apple") == (None, 41)
    assert place(node, "quince") == (None, 20_043)


def test_where_no_word_is_in_the_text_or_lines_are_others_it_opens_at_its_beginning(node_of):
    node = node_of(**{"pomegranate.txt": "filler", "book.ipynb": '{"cells": [{"source": "a\\napple"}]}',
                      "page.html": "<p>one</p>\n<p>melon</p>"})  # fmt: skip
    for query in ("pomegranate", "apple", "melon"):
        assert place(node, query) == (None, None)
