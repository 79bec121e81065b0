"""Small corpora for tests."""

from foltr.text.corpus import Document, Judgment, Place, Query, assemble

HERE = Place("test.txt", 1)


def corpus(documents, queries=(), grades=()):
    """documents: (title, body) each; queries: texts; grades: (query, document, grade) by place."""
    return assemble(
        "test",
        [Document(f"d{place}", title, body, HERE) for place, (title, body) in enumerate(documents)],
        [Query(f"q{place}", text, HERE) for place, text in enumerate(queries)],
        {"all": [Judgment(f"q{query}", f"d{document}", grade, HERE) for query, document, grade in grades]},
    )
