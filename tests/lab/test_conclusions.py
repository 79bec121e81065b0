"""The list of the papers' conclusions: complete, tied to claims of figures, and counted by `foltr reproduce --list`."""

import msgspec
import pytest
from laboratory import strict_json

from foltr.errors import SpecError
from foltr.lab.figures import conclusions, figures
from foltr.lab.figures.conclusions import PAPERS, STATES, Conclusion, claims_of_figures, counted, problems
from foltr.lab.figures.listing import data_of, listed_figures

LISTED = conclusions.read_conclusions()
WITHOUT_A_READER = {"intent-change"}  # published by its authors; clueweb09 with intents stands in for it

CLAIMS = {"made-up/fig1:rises": {"text": "it rises"}, "made-up/fig1:falls": {"text": "it falls", "ours": True}}
SOUND = Conclusion("S0/rises", "5.1", "It rises.", ["made-up/fig1:rises"], "holds", "3 of 3 settings")


def test_every_paper_has_conclusions_and_every_one_a_claim_or_a_reason():
    assert {one.paper for one in LISTED} == set(PAPERS)
    assert all(one.claims or one.reason for one in LISTED)
    assert not list(problems(LISTED, claims_of_figures()))


def test_a_sound_list_has_no_problems():
    assert not list(problems([SOUND], CLAIMS))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"claims": [], "verdict": "", "evidence": ""}, "S0/rises: neither a claim decides it nor a reason"),
        ({"claims": ["made-up/fig1:rises", "made-up/fig1:jumps"]}, "S0/rises: there is no claim made-up/fig1:jumps"),
        ({"claims": ["made-up/fig1:rises", "made-up/fig1:falls"]}, "claim made-up/fig1:falls is ours"),
        ({"verdict": "", "evidence": ""}, "S0/rises: it needs a verdict"),
        ({"evidence": ""}, "S0/rises: evidence belongs to a verdict of a run"),
        ({"verdict": "not run"}, "S0/rises: evidence belongs to a verdict of a run"),
        ({"claims": [], "reason": "a theorem"}, "S0/rises: a verdict without a claim"),
        ({"id": "S7/rises"}, "S7/rises: an id is a paper"),
        ({"place": ""}, "S0/rises: it needs a place and a text"),
    ],
)
def test_each_fault_of_a_conclusion_is_named(changes, message):
    found = list(problems([msgspec.structs.replace(SOUND, **changes)], CLAIMS))
    assert any(problem.startswith(message) for problem in found), found


def test_a_claim_that_no_conclusion_names_is_a_fault_unless_it_is_ours():
    unnamed = {**CLAIMS, "made-up/fig1:stays": {"text": "it stays"}}
    (problem,) = problems([SOUND], unnamed)
    assert problem.startswith("claim made-up/fig1:stays belongs to no conclusion")


def test_a_conclusion_stands_there_once():
    assert list(problems([SOUND, SOUND], CLAIMS)) == ["S0/rises stands there twice"]


def test_a_fault_of_the_file_is_refused(tmp_path):
    path = tmp_path / "conclusions.toml"
    path.write_text('[[conclusion]]\nid = "S0/x"\nplace = "1"\ntext = "X."\nverdit = "holds"\n', encoding="utf-8")
    with pytest.raises(SpecError, match=r"conclusions.toml: .*verdit"):
        conclusions.read_conclusions(path)
    path.write_text('[[conclusion]]\nid = "S0/x"\nplace = "1"\ntext = "X."\n', encoding="utf-8")
    with pytest.raises(SpecError, match=r"conclusions.toml: S0/x: neither a claim decides it"):
        conclusions.read_conclusions(path)


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ('[[claim]]\ntext = "it rises"\n', "claims without an id: made-up/fig1: 'it rises'"),
        ('[[claim]]\nid = "a"\ntext = "x"\n[[claim]]\nid = "a"\ntext = "y"\n', "with the same id: made-up/fig1:a"),
    ],
    ids=["no id", "the same id twice"],
)
def test_claims_need_an_id_of_their_own(tmp_path, monkeypatch, claims, message):
    (tmp_path / "made-up").mkdir()
    (tmp_path / "made-up" / "fig1.toml").write_text(claims, encoding="utf-8")
    monkeypatch.setattr(figures, "HOME", tmp_path)
    with pytest.raises(SpecError, match=message):
        claims_of_figures()


def test_data_that_a_conclusion_needs_is_in_a_figure_that_decides_it():
    likes = {name: conclusions.content_of(name).get("like", name) for name in figures.figure_ids()}
    for conclusion in LISTED:
        named = {claim.partition(":")[0] for claim in conclusion.claims}
        deciding = [name for name, like in likes.items() if {name, like} & named]
        known = {data for name in deciding for data in data_of(figures.read_figure(name))}
        assert set(conclusion.needs) <= known | WITHOUT_A_READER, conclusion.id


def test_figures_say_which_of_their_data_is_here(monkeypatch, tmp_path):
    monkeypatch.setenv("FOLTR_DATA", str(tmp_path))
    (tmp_path / "mq2007").mkdir()
    for part in range(1, 6):
        (tmp_path / "mq2007" / f"S{part}.txt").write_text("0 qid:1 1:0.5\n", encoding="utf-8")
    listed = {figure.id: figure for figure in listed_figures()}
    assert listed["fpdgd/fig2"].data == ["mq2007", "mslr-web10k"]
    assert (listed["fpdgd/fig2"].runs, listed["fpdgd/fig2"].missing) == ("partly", ["mslr-web10k"])
    assert (listed["poisoning/grid"].runs, listed["poisoning/fig5.2"].runs) == ("yes", "no")
    assert listed["silo/growth"].runs == "yes"


def test_the_data_of_a_figure_is_that_of_its_plan():
    for name in figures.figure_ids():
        figure = figures.read_figure(name)
        assert set(data_of(figure)) == {setting.data.name for setting in figures.plan_of(figure).settings}, name


def test_the_list_counts_conclusions_of_every_paper_by_verdict(command):
    counts = counted(LISTED)
    assert sum(count.conclusions for count in counts) == len(LISTED)
    assert all(sum(count.states.values()) == count.conclusions for count in counts)
    lines = command("reproduce", "--list").out.splitlines()
    for count in counts:
        numbers = [str(count.conclusions), *(str(count.states[state]) for state in STATES)]
        assert any(line.split() == [count.paper, *numbers] for line in lines), count.paper
    said = strict_json(command("reproduce", "--list", "--json").out)["conclusions"]
    assert said == [count._asdict() for count in counts]
