"""Published facts about each collection: features, size, publisher, names of its files."""

from typing import Literal, NamedTuple

_LETOR = "https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/"
_MSLR = "https://www.microsoft.com/en-us/research/project/mslr/"
_YAHOO = "https://webscope.sandbox.yahoo.com/catalog.php?datatype=c"
_ISTELLA = "https://istella.ai/datasets/letor-dataset/"
_INTENT_CHANGE = "https://github.com/ielab/OLTR-intent-change"
_WEBIS = "https://webis.de/data.html"
_FIVE = "S1.txt .. S5.txt or Fold1/train.txt, vali.txt, test.txt .. Fold5"
_FIVE_OR_ZIP = f"{_FIVE}, or the archive {{}}.zip as it is,"


class Collection(NamedTuple):
    """Numbers are 0 where only the files tell them."""

    features: int
    grades: int  # labels are 0 .. grades - 1
    queries: int
    documents: int
    where: str  # how to get it
    scaling: str = "none"  # what normalize=None means
    dense: bool = True  # every line gives every feature
    nan: Literal["error", "zero"] = "error"  # zero: NaN is read as 0
    files: str = _FIVE  # how its files are named


_BY_HAND = (
    "It was added by hand; its folder is empty or missing, or has texts, which only specs with a table `silo` use."
)
OWN = Collection(0, 0, 0, 0, where=_BY_HAND, dense=False)
COLLECTIONS = {
    "mq2007": Collection(
        46, 3, 1_692, 69_623,
        where=f"Microsoft Research publishes it in LETOR 4.0 (MQ2007.rar, to be unpacked): {_LETOR}",
    ),
    "mq2008": Collection(
        46, 3, 784, 15_211,
        where=f"Microsoft Research publishes it in LETOR 4.0 (MQ2008.rar, to be unpacked): {_LETOR}",
    ),
    "ohsumed": Collection(
        45, 3, 106, 16_140, dense=False,
        where=f"Microsoft Research publishes it in LETOR 3.0 (OHSUMED, folder QueryLevelNorm): {_LETOR}",
        files="Fold1/trainingset.txt, validationset.txt, testset.txt .. Fold5",
    ),
    "mslr-web10k": Collection(
        136, 5, 10_000, 1_200_192, scaling="query-minmax",
        where=f"Microsoft Research publishes it as MSLR-WEB10K.zip: {_MSLR}",
        files=_FIVE_OR_ZIP.format("MSLR-WEB10K"),
    ),
    "mslr-web30k": Collection(
        136, 5, 31_531, 3_771_125, scaling="query-minmax",
        where=f"Microsoft Research publishes it as MSLR-WEB30K.zip: {_MSLR}",
        files=_FIVE_OR_ZIP.format("MSLR-WEB30K"),
    ),
    "yahoo": Collection(
        700, 5, 29_921, 709_877, scaling="query-minmax", dense=False,
        where=f"Yahoo Webscope gives it to researchers as C14B, of which this is set 1: {_YAHOO}",
        files="set1.train.txt, set1.valid.txt, set1.test.txt",
    ),
    "istella-s": Collection(
        220, 5, 33_018, 3_408_630, scaling="query-minmax", dense=False,
        where=f"Istella publishes it as Istella-S LETOR: {_ISTELLA}",
        files="train.txt, vali.txt, test.txt (or the folder sample/ that holds them)",
    ),
    "clueweb09": Collection(
        42, 5, 61, 26_646,
        where=f"Webis publishes features for the ClueWeb09 web tracks: {_WEBIS}",
        files="S1.txt .. S5.txt",
    ),
    "intent-change": Collection(
        105, 2, 200, 0, scaling="query-minmax", dense=False, nan="zero",
        where=f"ielab publishes it for the TREC web tracks of 2009 to 2012 (datasets/ and intents/): {_INTENT_CHANGE}",
        files="datasets/ with clueweb09_intent_change.txt or the .zip that holds it, and intents/1.txt .. 4.txt,",
    ),
}  # fmt: skip
