"""The table `people` of a spec: which simulated people search, and what is compared."""

from typing import Annotated, ClassVar, Literal, TypeAlias

import msgspec

from foltr.lab.people.machine import LIMIT

Count = Annotated[int, msgspec.Meta(ge=1)]
Words: TypeAlias = Literal["mixed", "one-word", "question", "beginnings", "typos"]  # see `queries`
Folders: TypeAlias = Literal["own", "senders"]  # see `corpora`
CHECKPOINTS = (0, 10, 50, 200, 1000)  # searches with a click after which learners are tested


class KnownItems(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="known-items"):
    """People who look for documents that they know; MRR@10 of new searches after so many clicks."""

    people: Count = 4
    preferences: bool = True
    clicks: str = "navigational"
    longest: Count = 200  # last checkpoint
    tests: Count = 50  # searches of a person that learners are tested on, at each checkpoint
    documents: Count = LIMIT  # at most
    words: Words = "mixed"
    favourites: Count = 4  # folders of a person with preferences
    moving: bool = False  # half-way the favourites are replaced
    folders: Folders = "own"
    rows: Literal["all", "node"] = "all"  # node: what a node does, also with its memory of choices

    judged: ClassVar[bool] = False  # needs judged queries
    sends: ClassVar[bool] = False  # something leaves the node


class Topical(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="topical"):
    """People with the judged queries of a collection, who click by grade; nDCG@10 of the other half of the queries."""

    people: Count = 2
    clicks: str = "navigational"
    longest: Count = 1000  # last checkpoint
    tests: Count = 300  # queries that learners are tested on, at most
    documents: Count = LIMIT
    folders: Folders = "own"
    rows: Literal["all", "node"] = "all"

    judged: ClassVar[bool] = True
    sends: ClassVar[bool] = False


class Spill(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="spill"):
    """A person who opens documents of one folder; shares of the first three places of other searches that go there."""

    people: Count = 1
    openings: Count = 50
    words: Count = 500  # searches of one word whose first three documents lie elsewhere
    typed: Words = "mixed"  # by which the documents were found that the person opens
    clicks: str = "perfect"  # the person opens what was looked for
    documents: Count = LIMIT
    folders: Folders = "own"

    judged: ClassVar[bool] = False
    sends: ClassVar[bool] = False


class Together(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="together"):
    """People with separate indexes who share an update each release, against the same people local-only."""

    people: Count = 20
    preferences: bool = False
    clicks: str = "navigational"
    searches_with_click: Count = 50  # of each person
    releases: Count = 10
    prior: Annotated[float, msgspec.Meta(gt=0)] = 5.0  # lambda of lexical weights: the mean over people is less noisy
    clip: Annotated[float, msgspec.Meta(gt=0)] = 0.5  # L2 norm of a person's difference to the shared weights
    server_step: Annotated[float, msgspec.Meta(gt=0)] = 2.0
    tests: Count = 50
    documents: Count = LIMIT
    words: Words = "mixed"
    favourites: Count = 4
    folders: Folders = "own"

    judged: ClassVar[bool] = False
    sends: ClassVar[bool] = True


def checkpoints(longest: int) -> list[int]:
    return [one for one in CHECKPOINTS if one <= longest]
