"""The table of keys in the how-to is what the structs say."""

from pathlib import Path

import pytest
from laboratory import strict_json

from foltr.lab.spec import reference
from foltr.lab.spec.setting import TABLES, TEXT_TABLES
from foltr.learners.softmax import SoftmaxMap

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to-run-an-experiment.md"


def test_the_tables_of_the_how_to_are_generated_from_the_structs():
    document = HOW_TO.read_text("utf-8")
    assert reference.rewritten(document) == document, "foltr keys --write docs/how-to-run-an-experiment.md"
    for form in ("clicks", "silo"):
        assert reference.markdown(form) in document


def test_a_default_in_the_how_to_is_that_of_its_struct():
    usual = SoftmaxMap()
    assert f"`history_prior` = {usual.history_prior:g} " in HOW_TO.read_text("utf-8")


@pytest.mark.parametrize("form", ["clicks", *TEXT_TABLES])
def test_every_key_of_every_struct_is_listed(form):
    listed = {
        (row.table, kind): [key.name for key in row.keys] for row in reference.rows(form) for kind in row.kinds or ("",)
    }
    structs = TABLES if form == "clicks" else {form: TEXT_TABLES[form][form]}
    for table, kinds in structs.items():
        for kind, struct in kinds.items():
            assert listed[table, kind] == list(struct.__struct_fields__)


def test_a_changed_document_is_written_anew_and_one_without_tables_is_refused(command, refused, tmp_path):
    path = tmp_path / "how-to.md"
    path.write_text(HOW_TO.read_text("utf-8").replace("`history_prior` = 5", "`history_prior` = 2"))
    assert command("keys", "--write", path).code == 0
    assert path.read_text("utf-8") == HOW_TO.read_text("utf-8")
    path.write_text("nothing")
    assert "no table of keys" in refused("keys", "--write", path)
    assert "no form of specs 'clicksy'" in refused("keys", "clicksy")


def test_the_keys_are_listed_on_the_terminal_and_in_json(command):
    text = command("keys").out
    assert "learner, kind = softmax" in text
    assert "  learning_rate = 0.1" in text
    rows = strict_json(command("keys", "silo", "--json").out)
    assert {row["table"] for row in rows} == {"silo"}
    assert {"name": "parties", "default": "4", "choices": [], "meaning": ""} in rows[0]["keys"]
