"""What ELF files say about themselves, stripped or not: are they targets, and with which domains."""

import struct
from pathlib import Path
from typing import FrozenSet, NamedTuple

INSTRUMENTED = b"__AFL_SHM_ID\0"
PERSISTENT = b"##SIG_AFL_PERSISTENT##\0"
ET_EXEC, ET_DYN, PT_INTERP, X86_64 = 2, 3, 3, 62
# A line of text per key, the name of its domain first.
KEYS = b".ffuzz_keys"
# Files beside a target, which no broker starts.
COMPANIONS = {".cmplog", ".dict", ".gt", ".quokka", ".Quokka"}


class Target(NamedTuple):
    """An instrumented program."""

    machine: int
    persistent: bool
    domains: FrozenSet[str]


def content_of(path):
    """The bytes of an ELF file that may be a target; empty for any other file."""
    path = Path(path)
    if path.suffix in COMPANIONS or not path.is_file():
        return b""
    try:
        data = path.read_bytes()
    except OSError:
        return b""
    return data if data[:4] == b"\x7fELF" and len(data) >= 64 else b""


def inspect(path):
    """The target in a file; None if there is none."""
    data = content_of(path)
    if INSTRUMENTED not in data:
        return None
    order = "<" if data[5] == 1 else ">"
    machine = struct.unpack_from(order + "H", data, 18)[0]
    return Target(machine, PERSISTENT in data, domains(section(data, KEYS)))


def is_plain(path):
    """Whether it is a program without instrumentation that breakpoints work for: x86-64, with a loader."""
    data = content_of(path)
    if data[:6] != b"\x7fELF\x02\x01" or INSTRUMENTED in data:
        return False
    kind, machine = struct.unpack_from("<HH", data, 16)
    start, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    try:
        kinds = [struct.unpack_from("<I", data, start + index * size)[0] for index in range(count)]
    except struct.error:
        return False
    has_loader = PT_INTERP in kinds
    return kind in (ET_EXEC, ET_DYN) and machine == X86_64 and has_loader


def folder(path):
    """All targets that lie in the folder of a file, with their names."""
    found = ((other, inspect(other)) for other in sorted(Path(path).parent.iterdir()))
    return [(other, target) for other, target in found if target is not None]


def domains(keys):
    """Names of the domains that have keys. An empty name is that of the line before."""
    lines = keys.replace(b"\0", b"").split(b"\n")
    names = (line.split(b"\t")[0].decode("utf-8", "replace") for line in lines if b"\t" in line)
    return frozenset(name for name in names if name)


def section(data, wanted):
    """The content of a section; empty if there is none, or the file is damaged."""
    order = "<" if data[5] == 1 else ">"
    wide = data[4] == 2
    try:
        if wide:
            start = struct.unpack_from(order + "Q", data, 40)[0]
            size, count, names = struct.unpack_from(order + "HHH", data, 58)
        else:
            start = struct.unpack_from(order + "I", data, 32)[0]
            size, count, names = struct.unpack_from(order + "HHH", data, 46)
        heads = [head(data, order, wide, start + index * size) for index in range(count)]
        texts = content(data, heads[names])
        for entry in heads:
            name = texts[entry[0] : texts.index(b"\0", entry[0])]
            if name == wanted:
                return content(data, entry)
    except (struct.error, IndexError, ValueError):
        pass
    return b""


def head(data, order, wide, at):
    """Name, offset and length of a section."""
    name = struct.unpack_from(order + "I", data, at)[0]
    if wide:
        offset, length = struct.unpack_from(order + "QQ", data, at + 24)
    else:
        offset, length = struct.unpack_from(order + "II", data, at + 16)
    return name, offset, length


def content(data, entry):
    return data[entry[1] : entry[1] + entry[2]]
