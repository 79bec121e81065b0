"""`foltr silo`: search and train across parties without sharing documents. Imports stand inside each command."""

import math
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from foltr.cli.output import Commands, Json, print_json, with_options

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    help="Organisations with their own documents: search across them, one ranker.",
)

Key = Annotated[Path, typer.Option("--key", help="File of the hash key that the parties share.", show_default=False)]
Parties = Annotated[int, typer.Option("--parties", min=1, help="Number of organisations.")]
Queries = Annotated[int, typer.Option("--queries", min=1, help="Maximum number of training queries.")]
Noise = Annotated[str, typer.Option("--noise", help="Of answers: none, paper or one_shot.")]
Epsilon = Annotated[float, typer.Option("--epsilon", help="Of one word, all answers together (one_shot).")]
Statistics = Annotated[str, typer.Option("--statistics", help="Of words and lengths: exact or noisy.")]
StatisticsEpsilon = Annotated[
    float, typer.Option("--statistics-epsilon", help="Of one word, where statistics are noisy.")
]

_out = Console()
_err = Console(stderr=True)


@app.command("demo")
def demo(
    parties: Annotated[int, typer.Option("--parties", min=2, help="Number of organisations.")] = 4,
    queries: Queries = 200,
    json_: Json = False,
) -> None:
    """Four parties on Python's docstrings: a query, who learns what, and all regimes.

    A simulation in one process, about a minute. Key and noise follow from a seed.
    """
    from foltr.lab.silo.demo import one_question

    federation = _federation("docstrings", parties=parties, queries=queries)
    result = {"question": one_question(federation), "training": _trained(federation)}
    if json_:
        print_json(result)
        return
    _show_question(result["question"])
    _show_training(result["training"])


@app.command("build")
def build(
    folder: Annotated[Path, typer.Argument(help="Folder of text files.", show_default=False)],
    to: Annotated[Path, typer.Option("--to", help="The index to write.", show_default=False)],
    key: Key,
    top: Annotated[
        int | None, typer.Option("--top", help="Documents an answer may name (default: 150, or all).")
    ] = None,
    json_: Json = False,
) -> None:
    """Index a folder of texts for queries; writes a new key if needed.

    The index has exact counts. It is the owner's own, like the texts.
    """
    from foltr.silo.folders import build as index_folder
    from foltr.silo.folders import names_file

    built = index_folder(folder, to, key, top=top)
    if json_:
        print_json({"index": str(to), "names": str(names_file(to)), "key": str(key), **built._asdict()})
        return
    _say(
        f"{to}: {built.documents:,} documents, {built.words:,} words, {built.bytes:,} bytes; answers up to {built.top}"
    )
    _say(f"{names_file(to)}: the names of the documents")
    _say(
        "Both hold exact counts and names: epsilon infinite against whoever gets them. They are yours like the texts; "
        "do not share them."
    )
    if built.new_key:
        _say(f"{key}: a new key; whoever has it can name terms by trying words. Members get it sealed, in a group")


@app.command("query")
def query(
    index: Annotated[Path, typer.Argument(help="An index that `build` wrote.", show_default=False)],
    word: Annotated[str, typer.Argument(help="One word.", show_default=False)],
    key: Key,
    top: Annotated[int | None, typer.Option("--top", help="Documents to name (default: 10, or all).")] = None,
    json_: Json = False,
) -> None:
    """List the documents that have a word most often.

    Owner and asker are both here; exact counts, no epsilon.
    """
    from foltr.silo.folders import ask

    answer = ask(index, word, key, top=top)
    found = answer.result.found
    if json_:
        named = zip(answer.names, found.counts.tolist(), strict=True)
        documents = [{"document": name, "count": count} for name, count in named]
        print_json({"word": answer.term, "documents": documents, "complete": found.complete > 0})
        return
    if not answer.names:
        _say(f"{answer.term}: nothing found")
    for name, count in zip(answer.names, found.counts, strict=True):
        _say(f"{count:>6g}  {name}")
    _say("An asker learns this list and nothing of other words; the owner learns the word.")
    _say("Exact counts: epsilon infinite against the asker (unit word, zero-out).")


class Training(NamedTuple):
    """Options of `foltr silo train`."""

    corpus: Annotated[str, typer.Argument(help="Such as nfcorpus, vaswani, docstrings.", show_default=False)]
    parties: Parties = 4
    queries: Queries = 200
    noise: Noise = "none"
    epsilon: Epsilon = 0.5
    statistics: Statistics = "exact"
    statistics_epsilon: StatisticsEpsilon = 1.0
    lists: Annotated[str, typer.Option("--lists", help="index, or sketches: sound, paper, sampled.")] = "index"
    real_rows: Annotated[int, typer.Option("--real-rows", min=1, help="Of 30 rows of a sketch: real ones.")] = 30
    loss: Annotated[str, typer.Option("--loss", help="pointwise, pairwise or listwise.")] = "pointwise"
    language: Annotated[str, typer.Option("--language", help="Of stop words and stems.")] = "english"
    stem: Annotated[bool, typer.Option("--stem/--no-stem", help="Snowball stems (need PyStemmer).")] = True
    stop: Annotated[bool, typer.Option("--stop/--no-stop", help="Remove stop words.")] = True
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the division, keys, noise and training.")] = 1
    json_: Json = False


@app.command("train")
@with_options(Training)
def train(chosen: Training) -> None:
    """Compare BM25, Local, Local+, Global, CS-F-LTR, FPDGD and pooled rankers.

    A simulation in one process: key and noise follow from the seed.
    """
    _check(chosen)
    given = chosen._asdict()
    setup = {name: given[name] for name in ("parties", "queries", "noise", "epsilon", "lists", "real_rows")}
    setup |= {name: given[name] for name in ("statistics", "statistics_epsilon")}
    setup |= {"sgd": {"loss": chosen.loss}, "words": {name: given[name] for name in ("language", "stem", "stop")}}
    result = _trained(_federation(chosen.corpus, seed=chosen.seed, **setup))
    if chosen.json_:
        print_json(result)
        return
    _show_training(result)


def _check(chosen: Training) -> None:
    """Before anything is read."""
    from foltr.errors import SpecError
    from foltr.silo.messages import INDEX
    from foltr.silo.noise import check_epsilon, check_noise
    from foltr.silo.rtk import VARIANTS
    from foltr.silo.statistics import KINDS
    from foltr.silo.training import LOSSES

    check_noise(chosen.noise, chosen.epsilon)
    check_epsilon(chosen.statistics_epsilon)
    if chosen.statistics not in KINDS:
        raise SpecError(f"no statistics {chosen.statistics!r}; there are {', '.join(KINDS)}")
    if chosen.lists not in (INDEX, *VARIANTS):
        raise SpecError(f"no lists {chosen.lists!r}; there are {', '.join((INDEX, *VARIANTS))}")
    if chosen.lists == INDEX and (chosen.noise == "paper" or chosen.real_rows < 30):
        raise SpecError("the paper's noise and real rows are of sketches; give --lists sound, paper or sampled too")
    if chosen.loss not in LOSSES:
        raise SpecError(f"no loss {chosen.loss!r}; there are {', '.join(LOSSES)}")


def _federation(name: str, *, seed: int = 1, **setup: Any) -> Any:
    import msgspec

    from foltr.errors import InputError
    from foltr.lab.data import corpora
    from foltr.lab.silo.training import simulate
    from foltr.silo.parties import Setup

    corpus = corpora.load_corpus(name)
    if not len(corpus.judgments):
        raise InputError(f"{name} has no judged queries to learn from; add queries and qrels to its folder")
    with _err.status(f"indexing {len(corpus.ids):,} documents"):
        return simulate(corpus, msgspec.convert({"kind": "train", **setup}, Setup), seed=seed)


def _trained(federation: Any) -> dict[str, Any]:
    from foltr.lab.silo.demo import comparison
    from foltr.silo.parties import prepare

    with _err.status("querying other parties, and training"):
        return comparison(federation, prepare(federation))


def _show_question(result: dict[str, Any]) -> None:
    server, asker = result["server"], result["asker"]
    _say(f"Party 1 asks party 2 for the word {result['term']!r}.\n")
    answer = _table(("The asker receives", "count"))
    for name, count, truth in zip(*asker.values(), strict=True):
        answer.add_row(name, f"{count:g}" if count == truth else f"{count:g} (true count {truth})")
    _out.print(answer)
    sizes = " and ".join(f"{size:,}" for size in server["bytes"])
    _say(f"\nThe server sees two sealed messages of {sizes} bytes, who asks whom, and when.")
    _say("With a member that colludes it sees what the member sees.\n")
    _say("The owner opens a keyed hash of the word; it has the key and can hash every word")
    _say(f"of a dictionary: the word is {result['identified']!r}.\n")
    _say("With answers from sketches instead, of which some rows show the word:")
    guesses = _table(("real rows", "other candidates", "expected", "first guess"))
    for one in result["owner"]:
        others = (f"{one['candidates'] - 1:,}", _about(one["anonymity_set_size"]))
        guesses.add_row(str(one["real_rows"]), *others, one["first"])
    _out.print(guesses)
    _show_disclosure(result["disclosure"])
    table = _table(("noise", "of", "true", "answer", "again", "attacked", "epsilon"))
    for one in result["noise"]:
        figures = [f"{one[name]:.1f}" for name in ("answer", "after_the_attack")]
        again = "the same" if one["same_when_asked_again"] else "another"
        cells = (str(one["true_count"]), figures[0], again, figures[1], _figure(one["epsilon"]))
        table.add_row(one["noise"], one["of"], *cells)
    _out.print(table)
    _say("Epsilon: of all answers, against the asker, for one occurrence of one word")
    _say("(zero-out). attacked: what is left after noise that cells share is removed.\n")


def _show_disclosure(rows: list[dict[str, Any]]) -> None:
    _say("\nA member asks party 2 for 20 words, an allowance of a day, and tries a dictionary:")
    table = _table(("answers from", "recall", "words named", "entries known", "of unasked words", "kB a word"))
    for row in rows:
        shares = (f"{row[name]:.0%}" for name in ("recall", "words known", "entries known", "unasked known"))
        table.add_row(row["by"], *shares, f"{row['kB sent']:.1f}")
    _out.print(table)
    _say("Dictionary: the owner's own words, the worst case. Parties answer from an index;")
    _say("sketches are for reproductions, 'sampled' is refused between parties.\n")


def _show_training(result: dict[str, Any]) -> None:
    from foltr.lab.silo.training import TITLES

    numbers = [str(party + 1) for party in range(len(result["queries"]))]
    table = _table((f"{result['data']}, {result['metric']}", *(f"party {number}" for number in numbers), "mean"))
    for name, row in result["regimes"].items():
        table.add_row(TITLES[name], *(f"{value:.3f}" for value in (*row["parties"], row["mean"])))
    table.add_row("Local to CS-F-LTR", *(f"{one['verdict']} {one['mean']:+.3f}" for one in result["changes"]), "")
    table.add_row("documents", *map(str, result["documents"]), "")
    pairs = zip(result["relevant_queries"], result["queries"], strict=True)
    table.add_row("test queries that count", *(f"{relevant} of {tested}" for relevant, tested in pairs), "")
    _out.print(table)
    _say(f"Allowance: off in this table. A party read {result['entries_read']:,} entries of another,")
    _say(f"{result['allowances']:.1f} times what an owner answers by default; {result['mb_sent']:.1f} MB were sent.")
    _say("Test queries count if a document is relevant.")
    _say("One run. gains, loses: the 95 % interval of a party's change excludes 0.")
    _say("BM25: title and body as one field, stop words removed, stems; k1 = 1.2, b = .75.")
    answers, statistics, total = (_figure(result["epsilon"][name]) for name in ("answers", "statistics", "total"))
    _say(
        f"Noise of answers: {result['noise']}; statistics: {result['statistics']}. Largest epsilon of a word against a"
    )
    _say(f"member that asks (zero-out): answers {answers}, statistics {statistics}, together {total}.")
    _say("A simulation: key and noise follow from the seed, so it protects nothing itself.")


def _table(names: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False)
    for place, name in enumerate(names):
        table.add_column(name, justify="right" if place else "left")
    return table


def _about(number: float) -> str:
    return f"{number:,.0f}" if number >= 1 else f"{number:.2g}"


def _figure(epsilon: float) -> str:
    return f"{epsilon:.3g}" if math.isfinite(epsilon) else "infinite"


def _say(words: str) -> None:
    _out.print(words, highlight=False, markup=False, soft_wrap=True)
