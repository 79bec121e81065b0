"""An interpreter for the filters of system calls that `foltr.node.extract.confine` writes."""

import struct

ALLOWED = 0x7FFF0000
_MASK = 0xFFFFFFFF


def verdict(instructions, architecture, number, arguments=()):
    """What a filter returns for a call: ALLOWED, or 0x50000 plus the number of an error, or 0x80000000 (the end)."""
    given = [argument & 0xFFFFFFFFFFFFFFFF for argument in (*arguments, 0, 0, 0, 0, 0, 0)[:6]]
    data = struct.pack("<iIQ6Q", number, architecture, 0, *given)
    at = accumulator = 0
    while True:
        code, then, otherwise, value = struct.unpack("=HBBI", instructions[at])
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, value)
            case 0x54:
                accumulator &= value
            case 0x15:
                at += then if accumulator == value else otherwise
            case 0x35:
                at += then if accumulator >= value else otherwise
            case 0x06:
                return value & _MASK
            case _:
                raise AssertionError(f"no instruction of these filters: {code:#x}")
