"""State of a coordinator for its operator: `status` and `doctor`."""

import shutil
import stat
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from foltr.federation.network import certificates, enrolment, rounds, shared_ranker
from foltr.federation.network.charter import DAY, Desk
from foltr.federation.network.invitation import fingerprint
from foltr.secagg.round_keys import AHEAD

_ROUNDS, _ACTS = 10, 10
_LEAST_FREE = 200_000_000  # bytes
_AWAY_SECONDS = 3600.0


class Finding(NamedTuple):
    what: str
    ok: bool
    remedy: str


def state_of(desk: Desk, now: float) -> dict[str, Any]:
    store, number, second = desk.store, enrolment.effective(desk), enrolment.second_operator(desk)
    newest = shared_ranker.newest_shared(desk)
    listed = store.rows(
        "SELECT round, state, reason, closes, "
        "(SELECT COUNT(*) FROM receipts WHERE receipts.round = rounds.round) FROM rounds ORDER BY round DESC LIMIT ?",
        _ROUNDS,
    )
    acts = store.rows("SELECT time, act FROM acts ORDER BY number DESC LIMIT ?", _ACTS)
    invitations = store.rows(
        "SELECT number, role, expires FROM invitations WHERE used IS NULL AND revoked = 0 AND expires > ? "
        "ORDER BY number",
        now,
    )
    second_seen = enrolment.second_seen(desk)
    return {
        "name": desk.settings.name, "kind": desk.charter.kind, "federation": desk.charter.terms.federation,
        "address": desk.settings.address, "version": newest.version, "registry": number,
        "members": len(enrolment.known(desk, number).clients) if number else 0,
        "waiting": store.value("SELECT COUNT(*) FROM members WHERE admitted = 0 AND removed = 0"),
        "dormant": _dormant(desk, now),
        "fingerprints": [fingerprint(enrolment.public(desk.operator)), fingerprint(second) if second else ""],
        "second_seen": _time(second_seen) if second_seen else "",
        "keys_left": len(rounds.Mailbox(desk).statements(rounds.next_number(desk))),
        "proposal": proposal.head.number if (proposal := enrolment.proposal(desk)) else 0,
        "invitations": [{"number": item, "role": role, "expires": _time(end)} for item, role, end in invitations],
        "rounds": [
            {"round": round, "state": state, "reason": reason, "closes": _time(closes), "sent": sent}
            for round, state, reason, closes, sent in listed
        ],
        "acts": [{"time": _time(when), "act": act} for when, act in acts],
    }  # fmt: skip


def _dormant(desk: Desk, now: float) -> int:
    return desk.store.value(
        "SELECT COUNT(*) FROM members WHERE admitted = 1 AND removed = 0 AND seen < ?",
        now - desk.settings.dormant_days * DAY,
    )


def examine(folder: Path, desk: Desk, now: float) -> list[Finding]:
    """Everything that an operator can mend, each with what to do."""
    private = [path for path in folder.glob("*.key") if stat.S_IMODE(path.stat().st_mode) != 0o600]
    certificate = Path(desk.settings.certificate) if desk.settings.public_certificate else folder / certificates.SERVER
    authority = folder / certificates.AUTHORITY
    seen, keys = enrolment.second_seen(desk), len(rounds.Mailbox(desk).statements(rounds.next_number(desk)))
    number, waiting = enrolment.effective(desk), rounds.waiting_round(desk)
    integrity = desk.store.value("PRAGMA quick_check")
    return [
        Finding("keys are readable by their owner only", not private, f"chmod 600 {' '.join(map(str, private))}"),
        Finding("the database is whole", integrity == "ok", "restore a backup with `foltr coordinator restore`"),
        Finding("the server's certificate is valid", certificates.days_left(certificate, now) > 7,
                "restart `foltr coordinator serve`, which issues a new one; replace a public one yourself"),
        Finding("the certificate authority is valid for a year", certificates.days_left(authority, now) > 365,
                "invite all nodes anew from a new coordinator before it ends"),
        Finding("there is space on the disk", shutil.disk_usage(folder).free > _LEAST_FREE, "free some space"),
        Finding("the second operator has joined", enrolment.second_operator(desk) is not None,
                "give its operator the invitation of `foltr coordinator init`"),
        Finding("the second operator was seen within an hour", now - seen < _AWAY_SECONDS,
                "ask its operator to run `foltr aggregator serve`; windows go on as long as there are keys"),
        Finding(f"the second operator left keys for the next rounds ({keys} of {AHEAD})", keys > 0 or not number,
                "it leaves them when it is seen"),
        Finding("there is a registry", number > 0,
                f"{desk.settings.first_members} members are needed, admitted and countersigned"),
        Finding("no round waits for the second operator", waiting is None, "it finishes when the operator is seen"),
    ]  # fmt: skip


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
