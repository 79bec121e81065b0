"""Numbers of words: the fast path of tokens equals the analysis, numbers survive forgetting and are never reused."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from small_index import new_writer, write

from foltr.node.index import vocabulary
from foltr.text import analysis, splitting

SIGNS = "aBzZ09_.'’sßéıİ語ไ\u0301K"


@given(st.text(SIGNS, max_size=12))
@example("getHTTPName")
@example("PDFs")
@example("x" * 100)
@example("ABC123")
@example("123")
def test_the_words_of_a_token_are_those_of_the_analysis(text):
    for token in splitting.tokens(text):
        assert tuple(vocabulary.words_of(token)) == tuple(analysis.words_of(token))


@given(st.lists(st.text(SIGNS + " ", max_size=20), max_size=5))
def test_sequences_are_the_words_of_the_analysis(tmp_path_factory, texts):
    writer = new_writer(tmp_path_factory.mktemp("index"))
    for text in texts:
        numbers = writer._numbering.sequence(text)
        names = {number: word for word, number in writer._numbering._number.items()}
        assert [names[int(number)] for number in numbers] == analysis.words(text)
    writer.close()


@pytest.mark.parametrize("many", [True, False])
def test_numbers_are_found_again_after_a_restart_and_after_forgetting(tmp_path, many):
    first = new_writer(tmp_path)
    write(first, {"/home/me/x": "apple pear the"})
    before = dict(first.connection.execute("SELECT word, id FROM words").fetchall())
    first.close()
    second = new_writer(tmp_path)
    if many:
        second.expect_many()
    for _ in range(2):
        write(second, {"/home/me/y": "apple pear plum"})
        second._numbering.forget()
    after = dict(second.connection.execute("SELECT word, id FROM words").fetchall())
    assert {word: after[word] for word in before} == before
    assert len(set(after.values())) == len(after)
    write(second, {"/home/me/y": "fig"})  # plum vanishes
    write(second, {"/home/me/y": "plum"})
    assert second.connection.execute("SELECT id FROM words WHERE word = 'plum'").fetchone()[0] > max(after.values())
    second.close()
