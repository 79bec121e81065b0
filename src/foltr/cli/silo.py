"""`foltr silo`: search and learn across parties that show nobody their documents. Imports stand inside each command."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from foltr.cli.output import print_json

app = typer.Typer(
    no_args_is_help=True, help="Several organisations, each with its own documents: sketches, questions, one ranker."
)

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, nothing else there.")]
Key = Annotated[Path, typer.Option("--key", help="File of the hash key that the parties share.", show_default=False)]
Parties = Annotated[int, typer.Option("--parties", min=1, help="Organisations.")]
Queries = Annotated[int, typer.Option("--queries", min=1, help="At most so many to learn from, as many to test.")]
Noise = Annotated[str, typer.Option("--noise", help="Of answers: none, paper, cells or once.")]
Epsilon = Annotated[float, typer.Option("--epsilon", help="Of an answer (once: of all answers) for one word.")]

_out = Console()
_err = Console(stderr=True)


@app.command("demo")
def demo(
    parties: Annotated[int, typer.Option("--parties", min=2, help="Organisations.")] = 4,
    queries: Queries = 200,
    json_: Json = False,
) -> None:
    """Four parties on the docstrings of Python: sketches, a question and who saw what, five regimes. A minute."""
    from foltr.lab.silo.demo import one_question

    federation = _federation("docstrings", parties=parties, queries=queries)
    told = {"question": one_question(federation), "training": _trained(federation)}
    if json_:
        print_json(told)
        return
    _show_question(told["question"])
    _show_training(told["training"])


@app.command("build")
def build(
    folder: Annotated[Path, typer.Argument(help="Folder of text files.", show_default=False)],
    to: Annotated[Path, typer.Option("--to", help="The sketch to write.", show_default=False)],
    key: Key,
    top: Annotated[
        int | None, typer.Option("--top", help="Documents an answer may name (default: 150, or all).")
    ] = None,
    json_: Json = False,
) -> None:
    """A sketch of a folder that other parties can ask. A key is made where there is none yet."""
    from foltr.silo.folders import build as sketch_folder
    from foltr.silo.folders import names_file

    made = sketch_folder(folder, to, key, top=top)
    if json_:
        print_json({"sketch": str(to), "names": str(names_file(to)), "key": str(key), **made._asdict()})
        return
    _say(f"{to}: {made.documents:,} documents, {made.words:,} words, {made.bytes:,} bytes; answers up to {made.top}")
    _say(f"{names_file(to)}: the documents' names; keep it at home")
    if made.new_key:
        _say(f"{key}: a new key; give it to the parties that may ask, and to nobody else")


@app.command("query")
def query(
    sketch: Annotated[Path, typer.Argument(help="A sketch that `build` wrote.", show_default=False)],
    word: Annotated[str, typer.Argument(help="One word.", show_default=False)],
    key: Key,
    top: Annotated[int | None, typer.Option("--top", help="Documents to name (default: 10, or all).")] = None,
    true_rows: Annotated[
        int | None, typer.Option("--true-rows", help="Rows asked in earnest, the rest are decoys (default: all).")
    ] = None,
    json_: Json = False,
) -> None:
    """The documents of a sketch that have a word most often, and how well the question hid the word."""
    from foltr.silo.anonymity import spoken
    from foltr.silo.folders import ask

    answer = ask(sketch, word, key, top=top, true_rows=true_rows)
    found = answer.listed.found
    if json_:
        named = zip(answer.names, found.counts.tolist(), strict=True)
        documents = [{"document": name, "count": count} for name, count in named]
        told = {"word": answer.term, "documents": documents, "complete": found.complete > 0}
        print_json({**told, "others_that_fit": answer.listed.others})
        return
    if not answer.names:
        _say(f"{answer.term}: nothing found")
    for name, count in zip(answer.names, found.counts, strict=True):
        _say(f"{count:>6g}  {name}")
    if not found.complete:
        _say("No row asked keeps all documents of this word: there may be others.")
    _say(f"Of 100,000 words {spoken(answer.listed.others)}.")


@app.command("train")
def train(
    corpus: Annotated[str, typer.Argument(help="Such as nfcorpus, vaswani, docstrings.", show_default=False)],
    parties: Parties = 4,
    queries: Queries = 200,
    noise: Noise = "none",
    epsilon: Epsilon = 0.5,
    true_rows: Annotated[int, typer.Option("--true-rows", min=1, help="Rows of 30 asked in earnest.")] = 30,
    loss: Annotated[str, typer.Option("--loss", help="pointwise, pairwise or listwise.")] = "pointwise",
    stem: Annotated[bool, typer.Option("--stem", help="English stems (needs foltr[text]).")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Leave out English stop words.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the division, keys, noise and training.")] = 1,
    json_: Json = False,
) -> None:
    """Local, Local+, Global, CS-F-LTR and pooled rankers on a corpus divided among parties."""
    _check(noise, epsilon, loss)
    setup = {"noise": noise, "epsilon": epsilon, "true_rows": true_rows, "sgd": {"loss": loss}}
    setup |= {"words": {"stem": stem, "stop": stop}}
    told = _trained(_federation(corpus, seed=seed, parties=parties, queries=queries, **setup))
    if json_:
        print_json(told)
        return
    _show_training(told)


def _check(noise: str, epsilon: float, loss: str) -> None:
    """Before anything is read."""
    from foltr.errors import SpecError
    from foltr.silo.noise import check
    from foltr.silo.train import LOSSES

    check(noise, epsilon)
    if loss not in LOSSES:
        raise SpecError(f"no loss {loss!r}; there are {', '.join(LOSSES)}")


def _federation(name: str, *, seed: int = 1, **setup: Any) -> Any:
    import msgspec

    from foltr.lab.data import corpora
    from foltr.lab.silo.training import simulated
    from foltr.silo.parties import Setup

    corpus = corpora.load(name)
    with _err.status(f"sketching {len(corpus.ids):,} documents"):
        return simulated(corpus, msgspec.convert({"kind": "train", **setup}, Setup), seed=seed)


def _trained(federation: Any) -> dict[str, Any]:
    from foltr.lab.silo.demo import compared
    from foltr.silo.crossing import prepare

    with _err.status("asking other parties, and training"):
        return compared(federation, prepare(federation))


def _show_question(told: dict[str, Any]) -> None:
    server, asker = told["server"], told["asker"]
    _say(f"Party 1 asks party 2 for the word {told['term']!r}.\n")
    answer = _table(("The asker gets, with all rows", "count"))
    for name, count, truth in zip(*asker.values(), strict=True):
        answer.add_row(name, f"{count:g}" if count == truth else f"{count:g} (really {truth})")
    _out.print(answer)
    columns = " ".join(map(str, server["columns"][:8]))
    sizes = " and ".join(f"{size:,}" for size in server["bytes"])
    _say(f"\nThe server sees, with five true rows: two messages of {sizes} bytes,")
    _say(f"columns {columns} ... and cells.\n")
    _say("The owner has the key and tries every word it knows.")
    guesses = _table(("true rows", "other words that fit", "expected", "first guess"))
    for one in told["owner"]:
        fits = (f"{one['fitting'] - 1:,}", _about(one["expected_others"]))
        guesses.add_row(str(one["true_rows"]), *fits, one["first"])
    _out.print(guesses)
    _say("Where no other word fits, whoever has the key can name the term.\n")
    table = _table(("noise", "true count", "answer", "after the attack", "epsilon of a word"))
    for one in told["noise"]:
        figures = (f"{one[name]:.1f}" for name in ("answer", "after_the_attack"))
        table.add_row(one["noise"], str(one["true_count"]), *figures, _figure(one["epsilon"]))
    _out.print(table)
    _say("")


def _show_training(told: dict[str, Any]) -> None:
    from foltr.lab.silo.training import TITLES

    numbers = [str(party + 1) for party in range(len(told["queries"]))]
    table = _table((f"{told['data']}, {told['measure']}", *(f"party {number}" for number in numbers), "mean"))
    for name, row in told["regimes"].items():
        table.add_row(TITLES[name], *(f"{value:.3f}" for value in (*row["parties"], row["mean"])))
    table.add_row("Local to CS-F-LTR", *(f"{one['verdict']} {one['mean']:+.3f}" for one in told["changes"]), "")
    table.add_row("documents", *map(str, told["documents"]), "")
    table.add_row("test queries", *map(str, told["queries"]), "")
    _out.print(table)
    _say("One run; gains or loses: the 95 % interval of a party's change leaves out 0.")
    _say(f"Noise of answers: {told['noise']}; epsilon of the word told most about: {_figure(told['epsilon'])}.")


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
