"""A party's files: its identity, the group as the server carries it, and the newest epoch that it has opened.

    identity   two secret keys in hexadecimal digits, readable by the owner only; never overwritten. The secret by
               which an asker chooses rows and decoys follows from it (`keys.own_secret`), so it is the same in every
               session
    group      msgpack of `keys.Group`; validated on reading, trusted only after `open_group`
    newest     JSON of the newest epoch of every group that this party has opened, written before the key is used

`open_delivered` is what a party calls with the bytes that the server delivered: it opens them against the plan and the
stored epoch, and stores the new one. A file of epochs that was restored from a backup is refused if it has a witness.
"""

from pathlib import Path
from typing import Annotated

import msgspec

from foltr.errors import DataError
from foltr.files import create_private
from foltr.silo.keys import Group, GroupPlan, Identity, Member, Membership, Opened, new_identity, open_group
from foltr.witnessed import Place, checked, exclusive, read_state, write_state

MAX_BYTES = 1 << 22  # of a group
_SECRET_DIGITS = 64


class _Newest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    epoch: int
    context: Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{2})*$")]


def create_identity(path: Path) -> Identity:
    """A new identity in a new file."""
    identity = new_identity()
    create_private(path, f"{identity.signing.hex()}\n{identity.agreement.hex()}\n".encode("ascii"))
    return identity


def read_identity(path: Path) -> Identity:
    try:
        digits = path.read_text(encoding="ascii").split()
        signing, agreement = (bytes.fromhex(one) for one in digits if len(one) == _SECRET_DIGITS)
    except OSError as problem:
        raise DataError(f"{path} could not be read ({problem.strerror or problem}); create an identity first") from None
    except ValueError:
        raise DataError(f"{path} holds no identity: two lines of {_SECRET_DIGITS} digits were expected") from None
    return Identity(signing, agreement)


def encode_group(group: Group) -> bytes:
    return msgspec.msgpack.encode(group)


def decode_group(content: bytes) -> Group:
    """As it was sent: `open_group` decides whether it is to be trusted."""
    if len(content) > MAX_BYTES:
        raise DataError(f"a group of {len(content):,} bytes; at most {MAX_BYTES:,} are read")
    try:
        group = msgspec.msgpack.decode(content, type=Group)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise DataError(f"no group, or one of another version ({problem}); ask its maker for a new one") from None
    return group._replace(members=tuple(Member(*member) for member in group.members))


def open_delivered(
    content: bytes, identity: Identity, plan: GroupPlan, newest_file: Path, *, witness: Path | None = None
) -> Membership:
    """The membership of this party in the delivered group; the file remembers its epoch. `witness`: a file in a folder
    that no backup restores with the first; needed from its first use on."""
    place = checked(Place(newest_file, witness, "file of epochs"))
    with exclusive(place):
        state = read_state(place)
        newest = {} if state.content is None else _decoded(newest_file, state.content)
        known = newest.get(plan.name)
        before = Opened(known.epoch, bytes.fromhex(known.context)) if known else None
        member, opened = open_group(decode_group(content), identity, plan, before)
        newest[plan.name] = _Newest(opened.epoch, opened.context.hex())
        write_state(place, state, msgspec.json.encode(newest))
    return member


def _decoded(path: Path, content: bytes) -> dict[str, _Newest]:
    try:
        return msgspec.json.decode(content, type=dict[str, _Newest])
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise DataError(f"{path} does not hold the epochs of groups ({problem}); restore it from a copy") from None
