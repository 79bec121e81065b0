"""Folders of the two operators: keys that are made once, settings in TOML, state, and backups.

coordinator/
  coordinator.toml           settings
  federation.json            what was fixed at `init`
  identity.key operator.key  Ed25519 seeds, 0600, never overwritten
  authority.* server.*       certificate authority and certificate of the server
  desk.sqlite                members, rounds, inbox, steps, log of acts
  operator/                  memory of operator 0
  witness/                   its witnesses and its keys of single rounds: not in a backup, by design

aggregator/
  invitation.txt             of the second operator, with the pinned authority and identities
  identity.key operator/ witness/
"""

import os
import tarfile
import tempfile
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import InputError, StorageError
from foltr.federation.announcement import parameters_of, ranker_of
from foltr.federation.membership import Clock, Storage
from foltr.federation.network import certificates, enrolment, rounds, shared_ranker
from foltr.federation.network.charter import Charter, Desk, Settings, read_settings
from foltr.federation.network.invitation import Invitation, from_text, to_text
from foltr.federation.network.second import SecondOperator
from foltr.federation.network.store import Store
from foltr.federation.network.wire import OperatorTerms, Post
from foltr.files import create_private, private_folder, write_durably, xdg_folder
from foltr.secagg.crypto import new_secret

SETTINGS, CHARTER, DATABASE = "coordinator.toml", "federation.json", "desk.sqlite"
IDENTITY, OPERATOR = "identity.key", "operator.key"
INVITATION = "invitation.txt"
_BACKED_UP = (SETTINGS, CHARTER, IDENTITY, OPERATOR, certificates.AUTHORITY, certificates.AUTHORITY_KEY)
_SKIPPED_ROUNDS = 100  # after a restore: numbers that may have been used since the backup


def coordinator_home() -> Path:
    stated = os.environ.get("FOLTR_COORDINATOR_HOME")
    return Path(stated) if stated else xdg_folder("XDG_DATA_HOME") / "foltr-coordinator"


def aggregator_home() -> Path:
    stated = os.environ.get("FOLTR_AGGREGATOR_HOME")
    return Path(stated) if stated else xdg_folder("XDG_DATA_HOME") / "foltr-aggregator"


# --- the coordinator ------------------------------------------------------------------------------------------------


def create(folder: Path, charter: Charter, settings: Settings, now: float) -> Desk:
    """A new federation; a folder that has one is refused."""
    if (folder / CHARTER).exists():
        raise InputError(f"{folder}: there is a coordinator here; use another --folder")
    private_folder(folder)
    for name in (IDENTITY, OPERATOR):
        _make_key(folder / name)
    if not (folder / certificates.AUTHORITY).exists():
        certificates.make_authority(folder, charter.terms.federation, now)
    certificates.issue_server(folder, settings.address, now)
    write_durably(folder / SETTINGS, _toml(settings).encode())
    write_durably(folder / CHARTER, msgspec.json.format(msgspec.json.encode(charter), indent=2))  # last: it is complete
    desk = open_desk(folder)
    desk.store.note(now, f"federation {charter.terms.federation} was created, kind {charter.kind}")
    return desk


def open_desk(folder: Path) -> Desk:
    settings = read_settings(folder / SETTINGS)
    try:
        charter = msgspec.json.decode((folder / CHARTER).read_bytes(), type=Charter)
    except FileNotFoundError:
        raise InputError(f"{folder}: there is no coordinator here; make one with `foltr coordinator init`") from None
    except (OSError, msgspec.DecodeError, ValueError) as problem:
        raise StorageError(f"{folder / CHARTER}: cannot be read ({problem}); restore it from a backup") from None
    return Desk(
        Store(folder / DATABASE), charter, settings, read_key(folder / IDENTITY), read_key(folder / OPERATOR),
        Storage(folder / "operator", folder / "witness"), {},
    )  # fmt: skip


def certificate_files(folder: Path, settings: Settings, now: float) -> tuple[str, str]:
    """Certificate and key of the server; our own is issued anew before it ends, or where the address changed."""
    if settings.public_certificate:
        return settings.certificate, settings.key
    certificate = folder / certificates.SERVER
    names = certificates.names_of(certificate) if certificate.exists() else []
    late = names and certificates.days_left(certificate, now) < certificates.RENEW_DAYS
    if late or certificates.host_of(settings.address) not in names:
        certificates.issue_server(folder, settings.address, now)
    return str(certificate), str(folder / certificates.SERVER_KEY)


def invitation_of_node(folder: Path, desk: Desk, now: float) -> tuple[int, Invitation]:
    newest, latest = shared_ranker.newest_shared(desk), rounds.newest_round(desk)
    return enrolment.invite(
        desk, _pinned(folder, desk), now, version=newest.version, round=latest.round if latest else 0,
        ranker=shared_ranker.newest_ranker(desk),
    )  # fmt: skip


def invitation_of_operator(folder: Path, desk: Desk, now: float) -> tuple[int, Invitation]:
    start = desk.charter.start
    ranker = ranker_of(start.version, start.names, parameters_of(start))
    return enrolment.invite_operator(desk, _pinned(folder, desk), now, ranker)


def _pinned(folder: Path, desk: Desk) -> bytes:
    return b"" if desk.settings.public_certificate else certificates.authority_of(folder)


def backup(folder: Path, target: Path, now: float) -> None:
    """A private tar file while the coordinator runs: keys, settings, database; no witness and no key of a round."""
    desk = open_desk(folder)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".backup-") as name:
        copy = Path(name) / DATABASE
        desk.store.copy_to(copy)
        archive = Path(name) / "backup.tar"
        with tarfile.open(archive, "x") as tar:
            for backed_up in (*_BACKED_UP, "operator"):
                if (folder / backed_up).exists():
                    tar.add(folder / backed_up, backed_up)
            tar.add(copy, DATABASE)
        create_private(target, archive.read_bytes())
    desk.store.note(now, "a backup was written")
    desk.store.close()


def restore(folder: Path, source: Path, now: float) -> int:
    """A coordinator from a backup, in a new folder. Numbers of rounds that may have been used since are skipped: no key
    and no number of a round is used twice. Returns the next round."""
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty; restore into a new folder")
    private_folder(folder)
    allowed = {*_BACKED_UP, DATABASE}
    try:
        with tarfile.open(source) as tar:
            for entry in tar:
                if entry.name in allowed or entry.name.partition("/")[0] == "operator":
                    tar.extract(entry, folder, filter="data")
    except (OSError, tarfile.TarError) as problem:
        raise InputError(f"{source}: cannot be read as a backup ({problem})") from None
    for path in folder.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    desk = open_desk(folder)
    certificates.issue_server(folder, desk.settings.address, now)
    round = rounds.skip_rounds(desk, _SKIPPED_ROUNDS, now)
    private_folder(folder / "witness")
    write_durably(folder / "witness" / "keys" / "signed", msgspec.msgpack.encode(round - 1))
    desk.store.close()
    return round


# --- the second operator --------------------------------------------------------------------------------------------


def create_second(folder: Path, text: str) -> tuple[Ed25519PrivateKey, Invitation]:
    """The identity and the invitation of a second operator. Asked again with the same invitation, the same."""
    invitation = from_text(text)
    if invitation.role != "operator":
        raise InputError("this is an invitation of a node; `foltr node join` takes it")
    private_folder(folder)
    if not (folder / IDENTITY).exists():
        _make_key(folder / IDENTITY)
    if (folder / CHARTER).exists():
        raise InputError(f"{folder}: an operator has joined a federation here; use another --folder for another one")
    write_durably(folder / INVITATION, to_text(invitation).encode())
    return read_key(folder / IDENTITY), invitation


def accept_terms(folder: Path, invitation: Invitation, identity: Ed25519PrivateKey, given: OperatorTerms) -> None:
    """Stores what the coordinator answered, where it is what the invitation says."""
    public = identity.public_key().public_bytes_raw()
    expected = (invitation.terms, invitation.coordinator, (invitation.operators[0], public))
    if (given.terms, given.coordinator, given.operators) != expected:
        raise InputError("the coordinator's terms or keys are not those of the invitation; ask its operator")
    write_durably(folder / CHARTER, msgspec.json.encode(given))


def read_second(folder: Path) -> tuple[Ed25519PrivateKey, Invitation, OperatorTerms]:
    try:
        given = msgspec.json.decode((folder / CHARTER).read_bytes(), type=OperatorTerms)
        invitation = from_text((folder / INVITATION).read_text(encoding="ascii"))
    except FileNotFoundError:
        raise InputError(f"{folder}: no federation was joined here; use `foltr aggregator join INVITATION`") from None
    except (OSError, msgspec.DecodeError, ValueError) as problem:
        raise StorageError(f"{folder}: cannot be read ({problem}); restore it from a backup") from None
    return read_key(folder / IDENTITY), invitation, given


def second_operator(folder: Path, post: Post, clock: Clock) -> SecondOperator:
    identity, invitation, given = read_second(folder)
    storage = Storage(folder / "operator", folder / "witness")
    return SecondOperator(identity, given.terms, invitation.coordinator, given.operators, storage, post, clock)


# --- keys and settings ----------------------------------------------------------------------------------------------


def read_key(path: Path) -> Ed25519PrivateKey:
    try:
        return Ed25519PrivateKey.from_private_bytes(path.read_bytes())
    except (OSError, ValueError) as problem:
        raise StorageError(f"{path}: not a key ({problem}); restore it from a backup") from None


def _make_key(path: Path) -> None:
    create_private(path, new_secret())


def _toml(settings: Settings) -> str:
    """Settings as the operator edits them; every value is a string, a number or a boolean."""
    lines = ["# Settings of this coordinator. `foltr coordinator serve` reads them when it starts."]
    for name, value in msgspec.to_builtins(settings).items():
        lines.append(f"{name} = {msgspec.json.encode(value).decode()}")
    return "\n".join(lines) + "\n"
