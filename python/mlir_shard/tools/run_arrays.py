# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arrays that shard-run reads and writes, in NumPy's files."""

from __future__ import annotations

import io
import os
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlir_shard.tools import output
from mlir_shard.tools.command_line import UsageError

ONE, SEVERAL = ".npy", ".npz"
# What NumPy raises for files that are damaged, each where it is: in a header, an archive, or what that has packed.
_DAMAGED = (
    OSError,
    ValueError,
    EOFError,
    SyntaxError,
    RuntimeError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def read(paths: Sequence[str]) -> list[Any]:
    """The arrays in .npy and .npz files, in order; UsageError for a file that holds none."""
    return [array for path in paths for array in _read(path)]


def _read(path: str) -> list[Any]:
    import numpy as np

    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return [loaded]
        with loaded:
            found = {name: loaded[name] for name in loaded.files}
    except MemoryError:
        raise _unreadable(path, "it says that it holds more than this machine's memory does") from None
    except _DAMAGED as error:
        known = error.strerror if isinstance(error, OSError) else None
        raise _unreadable(path, known or "it holds no array of NumPy's") from None
    for name, array in found.items():
        # Of other files in an archive NumPy gives the bytes.
        if not isinstance(array, np.ndarray):
            raise _unreadable(path, f"its '{name}' holds no array of NumPy's")
    return list(found.values())


def _unreadable(path: str, reason: str) -> UsageError:
    return UsageError(f"cannot read the input '{path}': {reason}")


def check_output(path: str) -> None:
    """UsageError where results could not be written there, before anything is run."""
    if not path.endswith((ONE, SEVERAL)):
        raise UsageError(f"--output={path}: results are written to a {SEVERAL} file, or one to a {ONE} file")
    try:
        output.check(path)
    except output.OutputError as error:
        raise UsageError(str(error)) from None


def check_count(path: str, results: int) -> None:
    """UsageError where the file does not take as many results."""
    if path.endswith(ONE) and results != 1:
        raise UsageError(f"--output={path}: a {ONE} file holds one result, the program has {results}: use {SEVERAL}")


def write(path: str, results: Sequence[Any]) -> None:
    """Writes the results to a file, whole or not at all; UsageError where that fails."""
    import numpy as np

    packed = io.BytesIO()
    if path.endswith(ONE):
        np.save(packed, results[0], allow_pickle=False)
    else:
        np.savez(packed, **{f"result{index}": array for index, array in enumerate(results)})
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        try:
            temporary.write_bytes(packed.getbuffer())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot open output file '{path}': {error.strerror}") from None
