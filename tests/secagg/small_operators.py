"""Two operators on a disk, the rounds between them, and a thief who has everything of one of them."""

from pathlib import Path

import msgspec
from small_two_servers import RANKER, contributions, inboxes

from foltr.errors import SecureAggregationError
from foltr.federation.membership import Storage
from foltr.federation.operator import Operator
from foltr.secagg import crypto, two_servers
from foltr.secagg.round_keys import checked_keys, round_of
from foltr.secagg.two_servers import Claim, Contribution, Signed, Window, combine

NOW = 1.8e9  # seconds since 1970
DAY = 86_400


class Clock:
    def __init__(self, now=NOW):
        self.now = now

    def __call__(self):
        return self.now


def operators(fed, folder, clock=None):
    clock = clock or Clock()
    return tuple(
        Operator(place, identity, fed.setup, Storage(folder / f"operator-{place}", folder / f"witness-{place}"), clock)
        for place, identity in enumerate(fed.operators)
    )


def statements(pair, round):
    """Of both operators about their keys of a round."""
    left = [{round_of(one): one for one in operator.statements(round)} for operator in pair]
    return tuple(by_round[round] for by_round in left)


def ranker_of(round):
    """Every round begins with a ranker of its own: without noise one ranker has one sum."""
    return RANKER[:-1] + bytes([RANKER[-1] + round - 1 & 255])


def window_of(fed, pair, round=1, ranker=None):
    keys = checked_keys(statements(pair, round), setup=fed.setup, round=round, now=pair[0].clock())
    return Window(fed.setup, round, ranker or ranker_of(round), keys)


def sent_in(fed, window, rows=None):
    return contributions(fed, rows=rows, window=window)


def exchange(pair, window, boxes):
    """The lists, agreements and halves of both operators."""
    lists = [operator.listing(window, box)[0] for operator, box in zip(pair, boxes, strict=True)]
    agreements = [pair[place].agreement(window, lists[1 - place]) for place in (0, 1)]
    halves = tuple(pair[place].half(window, agreements[1 - place]) for place in (0, 1))
    return lists, agreements, halves


def run(fed, pair, round=1, rows=None):
    """A whole round: its window, what was sent, and the sums."""
    window = window_of(fed, pair, round)
    sent = sent_in(fed, window, rows)
    *_, halves = exchange(pair, window, inboxes(fed, sent))
    return window, sent, combine(halves, window=window)


def secrets_of(operator):
    """Every 32 bytes that a thief of an operator's machine finds, by the public key that they would be the secret of:
    its identity, and each place in each of its files."""
    found = {operator.identity.private_bytes_raw()}
    for folder in operator.storage:
        for path in Path(folder).rglob("*"):
            content = path.read_bytes() if path.is_file() else b""
            found |= {content[start : start + 32] for start in range(len(content) - 31)}
    return {crypto.public_of(crypto.agreement_key(secret)): secret for secret in found}


def opened_by(secrets, place, window, sent):
    """The clients whose recorded share for one operator opens with one of these secrets."""
    now, opened = two_servers.context(window), set()
    fitting = [secrets[key] for key in window.keys if key in secrets]
    for client, message in sent.items():
        found = msgspec.msgpack.decode(message, type=Contribution)
        claim = msgspec.msgpack.decode(msgspec.msgpack.decode(found.claim, type=Signed).body, type=Claim)
        for secret in fitting:
            shared = crypto.agree(crypto.agreement_key(secret), claim.ephemeral)
            key = two_servers.box_key(shared, now, client, place, claim.ephemeral, window.keys[place])
            try:
                crypto.decrypt(key, (found.first, found.second)[place], two_servers.box_label(now, client))
            except SecureAggregationError:
                continue
            opened.add(client)
    return opened
