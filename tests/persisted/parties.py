"""The parties whose files are in `before/`: all keys follow from fixed bytes, so they are the same in every process."""

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from silos import KEY, TEXTS
from small_rounds import RANKER, Federation, public
from small_two_servers import Federation as TwoServersFederation

from foltr.federation.membership import Member
from foltr.privacy.events import Event
from foltr.privacy.ledger_file import NodeLedger, open_ledger
from foltr.secagg.terms import Terms, registry
from foltr.secagg.two_servers import two_servers
from foltr.silo.allowance import Limits
from foltr.silo.keys import Identity, group_plan, make_group, open_group
from foltr.silo.keys import public as party_of

NOW = 1.7e9  # seconds since 1970
VICTIM = 10
EVENT = Event("gaussian", "l2", 1.0, "l2", 40.0)
OTHER_EVENT = Event("gaussian", "l2", 1.0, "l2", 20.0)


def identity(number: int) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)


def federation(clients: int, first: int, **terms: float) -> Federation:
    identities = {10 + 3 * place: identity(first + place) for place in range(clients)}
    server = identity(first + clients)
    keys = {name: public(key) for name, key in identities.items()}
    return Federation(identities, server, registry(public(server), keys), Terms(f"{first:032x}", 6, **terms))


def pair_federation(clients: int, first: int, **terms: float) -> TwoServersFederation:
    one_server = federation(clients, first, **terms)
    operators = identity(first + 50), identity(first + 51)
    setup = two_servers(one_server.terms, one_server.registry, (public(operators[0]), public(operators[1])))
    return TwoServersFederation(one_server.identities, operators, setup, bytes([first + 60]) * 32)


def member(fed: Federation, name: int) -> Member:
    return Member(name, fed.identities[name], fed.terms, fed.registry)


def federated_ledger(home: Path, budget: float | None = None) -> NodeLedger:
    return open_ledger(home / "state" / "ledger", delta=1e-5, budget=budget, witness=home / "witness" / "ledger")


ROUND = federation(5, 1, noise_multiplier=4.0)
BY_LOT = federation(12, 20, dropouts=0, corrupt=0.15, cohort=5, noise_multiplier=4.0)
PAIR = pair_federation(7, 100, noise_multiplier=3.0)

LIMITS = Limits(entries=100, total=250)
IDENTITIES = [Identity(bytes([200 + number]) * 32, bytes([210 + number]) * 32) for number in range(3)]
PLAN = group_plan("clinics", party_of(IDENTITIES[0]), [party_of(one) for one in IDENTITIES])
GROUP = make_group(PLAN, IDENTITIES[0], epoch=1, key=KEY)
MEMBERS = [open_group(GROUP, one, PLAN)[0] for one in IDENTITIES]

__all__ = ["RANKER", "TEXTS"]
