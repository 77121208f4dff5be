# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names of the host's passes and dialects, read from its libraries.

The names are strings in the read-only data of the host's shared libraries: every string that looks like a name is
looked up. A linker may store a string as the tail of a longer one, so tails are looked up too.
"""

from __future__ import annotations

import functools
import mmap
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mlir_shard import host
from mlir_shard.passes import host_passes

_STRING = re.compile(rb"(?<![a-z0-9-])([a-z][a-z0-9-]{2,60})(?=\0)")
_NAMESPACE = re.compile(rb"(?<![a-z0-9_])([a-z][a-z0-9_]{1,24})\.[a-z][a-z0-9_.]*(?=\0)")
_PASS = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


@functools.cache
def pass_names() -> tuple[str, ...]:
    """Returns the names of the host's passes and pipelines, sorted."""
    candidates = set(_strings(_STRING))
    candidates |= {one[at.end() :] for one in candidates for at in re.finditer("-", one)}
    found = {one for one in candidates if _PASS.fullmatch(one) and host_passes.is_registered(one)}
    # The text of a pipeline contains the names of its passes.
    for name in sorted(found):
        one = host_passes.make(name)
        if one.is_pipeline:
            words = set(_PASS.findall(re.sub(r"\{[^}]*\}", "", one.text)))
            found |= {word for word in words if host_passes.is_registered(word)}
    return tuple(sorted(found))


def dialects(context: Any) -> tuple[str, ...]:
    """Loads all dialects that a context can load and returns their namespaces, sorted.

    Dialects are found by the names of their operations, such as `func.call`; those without operations are not found.
    """
    found = {"builtin"}
    for name in _strings(_NAMESPACE):
        try:
            context.get_dialect_descriptor(name)
        except ValueError:
            continue
        found.add(name)
    return tuple(sorted(found))


def _strings(pattern: re.Pattern[bytes]) -> set[str]:
    found: set[str] = set()
    for path in (host.capi_library(), *sorted(host.library_directory().glob("_stablehlo*"))):
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for start, size in _read_only_data(data, path):
                found |= {one.decode() for one in pattern.findall(data[start : start + size])}
    return found


def _read_only_data(data: mmap.mmap, path: Path) -> Iterator[tuple[int, int]]:
    """Yields the (start, size) of the `.rodata` section of a 64-bit little-endian ELF file, or all of another file."""
    if data[:6] != b"\x7fELF\x02\x01":
        yield 0, len(data)
        return
    (table,) = struct.unpack_from("<Q", data, 40)
    entry_size, count, names_index = struct.unpack_from("<HHH", data, 58)
    sections = [struct.unpack_from("<IIQQQQ", data, table + index * entry_size) for index in range(count)]
    names_start = sections[names_index][4]
    for name, _, _, _, start, size in sections:
        if data[names_start + name : names_start + name + 8] == b".rodata\0":
            yield start, size


if __name__ == "__main__":
    print(*pass_names())
