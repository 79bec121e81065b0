"""Published facts about each collection: features, size, publisher, names of its files."""

from typing import NamedTuple


class Collection(NamedTuple):
    """Numbers are 0 where only the files tell them."""

    features: int
    grades: int  # labels are 0 .. grades - 1
    queries: int
    documents: int
    scaling: str  # what normalize=None means
    dense: bool  # every line gives every feature
    where: str  # how to get it
    files: str  # how its files are named


_LETOR = "https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/"
_MSLR = "https://www.microsoft.com/en-us/research/project/mslr/"
_YAHOO = "https://webscope.sandbox.yahoo.com/catalog.php?datatype=c"
_ISTELLA = "https://istella.ai/datasets/letor-dataset/"
_WEBIS = "https://webis.de/data.html"
_FIVE = "S1.txt .. S5.txt or Fold1/train.txt, vali.txt, test.txt .. Fold5"
_FIVE_OR_ZIP = f"{_FIVE}, or the archive {{}}.zip as it is,"

_BY_HAND = (
    "It was added by hand; its folder is empty or missing, or has texts, which only specs with a table `silo` use."
)
OWN = Collection(0, 0, 0, 0, "none", False, where=_BY_HAND, files=_FIVE)
COLLECTIONS = {
    "mq2007": Collection(
        features=46,
        grades=3,
        queries=1_692,
        documents=69_623,
        scaling="none",
        dense=True,
        where=f"Microsoft Research publishes it in LETOR 4.0 (MQ2007.rar, to be unpacked): {_LETOR}",
        files=_FIVE,
    ),
    "mq2008": Collection(
        features=46,
        grades=3,
        queries=784,
        documents=15_211,
        scaling="none",
        dense=True,
        where=f"Microsoft Research publishes it in LETOR 4.0 (MQ2008.rar, to be unpacked): {_LETOR}",
        files=_FIVE,
    ),
    "ohsumed": Collection(
        features=45,
        grades=3,
        queries=106,
        documents=16_140,
        scaling="none",
        dense=False,
        where=f"Microsoft Research publishes it in LETOR 3.0 (OHSUMED, folder QueryLevelNorm): {_LETOR}",
        files="Fold1/trainingset.txt, validationset.txt, testset.txt .. Fold5",
    ),
    "mslr-web10k": Collection(
        features=136,
        grades=5,
        queries=10_000,
        documents=1_200_192,
        scaling="query-minmax",
        dense=True,
        where=f"Microsoft Research publishes it as MSLR-WEB10K.zip: {_MSLR}",
        files=_FIVE_OR_ZIP.format("MSLR-WEB10K"),
    ),
    "mslr-web30k": Collection(
        features=136,
        grades=5,
        queries=31_531,
        documents=3_771_125,
        scaling="query-minmax",
        dense=True,
        where=f"Microsoft Research publishes it as MSLR-WEB30K.zip: {_MSLR}",
        files=_FIVE_OR_ZIP.format("MSLR-WEB30K"),
    ),
    "yahoo": Collection(
        features=700,
        grades=5,
        queries=29_921,
        documents=709_877,
        scaling="query-minmax",
        dense=False,
        where=f"Yahoo Webscope gives it to researchers as C14B, of which this is set 1: {_YAHOO}",
        files="set1.train.txt, set1.valid.txt, set1.test.txt",
    ),
    "istella-s": Collection(
        features=220,
        grades=5,
        queries=33_018,
        documents=3_408_630,
        scaling="query-minmax",
        dense=False,
        where=f"Istella publishes it as Istella-S LETOR: {_ISTELLA}",
        files="train.txt, vali.txt, test.txt (or the folder sample/ that holds them)",
    ),
    "clueweb09": Collection(
        features=42,
        grades=5,
        queries=61,
        documents=26_646,
        scaling="none",
        dense=True,
        where=f"Webis publishes features for the ClueWeb09 web tracks: {_WEBIS}",
        files="S1.txt .. S5.txt",
    ),
}
