# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of damaged files of arrays as inputs of shard-run."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import numpy as np
import pytest

from mlir_shard.tools.command_line import UsageError
from mlir_shard.tools.run import arrays as run_arrays

NO_ARRAY = "it is not a NumPy array"


def array_file() -> bytes:
    packed = io.BytesIO()
    np.save(packed, np.arange(12, dtype=np.float32).reshape(4, 3))
    return packed.getvalue()


def archive(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return packed.getvalue()


def with_shape(shape: str) -> bytes:
    """Returns a file with another shape. The length of the header, which precedes the header, stays the same."""
    changed = f"{shape}, }}".encode()
    return array_file().replace(b"(4, 3), }" + b" " * (len(changed) - 9), changed)


def with_damaged_data() -> bytes:
    file = bytearray(archive(**{"a.npy": array_file()}))
    for place in range(60, 90):
        file[place] ^= 0xFF
    return bytes(file)


def with_entry_changed(flags: int = 0, method: int = 8) -> bytes:
    """Returns an archive whose only entry is marked as encrypted or as compressed with an unknown method."""
    file = bytearray(archive(**{"a.npy": array_file()}))
    directory = file.index(b"PK\x01\x02")
    file[6], file[directory + 8] = flags, flags
    file[8], file[directory + 10] = method, method
    return bytes(file)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: b"", NO_ARRAY),
        (lambda: b"\x93NUMPY", NO_ARRAY),
        (lambda: array_file()[:20], NO_ARRAY),
        (lambda: array_file()[:-5], NO_ARRAY),
        (lambda: array_file().replace(b"'<f4'", b"'<zz'"), NO_ARRAY),
        (lambda: array_file().replace(b"{'descr'", b"{{descr'"), NO_ARRAY),
        (lambda: with_shape("(4, -3)"), NO_ARRAY),
        (
            lambda: with_shape("(4000000000, 30000000)"),
            "its header specifies more bytes than the memory of this machine",
        ),
        (lambda: archive(**{"a.npy": array_file()})[:-30], NO_ARRAY),
        (with_damaged_data, NO_ARRAY),
        (lambda: with_entry_changed(flags=1), NO_ARRAY),
        (lambda: with_entry_changed(method=99), NO_ARRAY),
        (lambda: archive(**{"a.npy": array_file(), "notes.txt": b"none"}), "its 'notes.txt' is not a NumPy array"),
    ],
)
def test_damaged_files(tmp_path_factory: pytest.TempPathFactory, make: Callable[[], bytes], complaint: str) -> None:
    path = tmp_path_factory.mktemp("arrays") / "in.npz"
    path.write_bytes(make())
    with pytest.raises(UsageError) as raised:
        run_arrays.read([str(path)])
    assert str(raised.value) == f"cannot read '{path}': {complaint}"


def test_objects_are_not_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("arrays") / "in.npy"
    np.save(path, np.array([1, "two", None], object))
    with pytest.raises(UsageError, match=NO_ARRAY):
        run_arrays.read([str(path)])
