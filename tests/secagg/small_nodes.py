"""What the tests of deployed nodes share: nodes on a disk, and rounds with one of them."""

import time
from typing import NamedTuple

import msgspec
import numpy as np
from small_rounds import announced_in, answers, federation, members, server_of

from foltr.federation.membership import Member, Storage
from foltr.federation.participant import answer, join_round
from foltr.privacy.ledger_file import open_ledger
from foltr.secagg.messages import STAGES

FED = federation(5, length=6, noise_multiplier=4.0)  # sums of 4
VICTIM, OTHER = 10, 13
changed = msgspec.structs.replace


class Node(NamedTuple):
    member: Member
    ledger: object
    storage: Storage
    clock: object = time.time

    def answer(self, request):
        return answer(self.member, request, ledger=self.ledger, storage=self.storage, clock=self.clock)

    def join(self, round=1, update=None):
        update = np.full(FED.terms.length, 0.1) if update is None else update
        known = {"ledger": self.ledger, "storage": self.storage, "clock": self.clock}
        return join_round(self.member, announced_in(self.member, round), update, **known)


def node(tmp_path, name=VICTIM, budget=None, fed=FED, clock=time.time):
    home = tmp_path / str(name)
    for part in ("state", "witness"):
        (home / part).mkdir(parents=True, exist_ok=True)
    ledger = open_ledger(home / "state" / "ledger", delta=1e-5, budget=budget, witness=home / "witness" / "ledger")
    member = Member(name, fed.identities[name], fed.terms, fed.registry)
    return Node(member, ledger, Storage(home / "state", home / "witness"), clock)


def round_with(victim, stage, round=1):
    """A round of the victim and bare clients up to a stage: server, states of the others, requests."""
    server, states = server_of(FED, round), members(FED, round)
    del states[VICTIM]
    requests = next(server)
    for current in STAGES:
        if current == stage:
            return server, states, requests
        replies = answers(states, {name: requests[name] for name in states})
        requests = server.send({VICTIM: victim.answer(requests[VICTIM]), **replies})
    raise ValueError(stage)
