# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The files of arrays that shard-run reads and writes, and checks that the arrays fit a function."""

from __future__ import annotations

import io
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlir_shard.tools import output
from mlir_shard.tools.command_line import UsageError

if TYPE_CHECKING:
    from mlir_shard.runtime.arrays import TensorSpec

ONE = ".npy"
SEVERAL = ".npz"
# The errors that NumPy raises for files with a damaged header, archive, or compressed part of an archive.
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


@dataclass(frozen=True, slots=True)
class GivenArray:
    """An array and its source: the name of a file, or of an array in an archive."""

    array: Any
    source: str


def read(paths: Sequence[str]) -> list[GivenArray]:
    """Reads the arrays in .npy and .npz files, in order; raises UsageError for a file that contains no arrays."""
    return [array for path in paths for array in _read(path)]


def _read(path: str) -> list[GivenArray]:
    import numpy as np

    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return [GivenArray(loaded, f"'{path}'")]
        with loaded:
            found = {name: loaded[name] for name in loaded.files}
    except MemoryError:
        raise _unreadable(path, "its header specifies more bytes than the memory of this machine") from None
    except _DAMAGED as error:
        known = error.strerror if isinstance(error, OSError) else None
        raise _unreadable(path, known or "it is not a NumPy array") from None
    for name, array in found.items():
        # For other files in an archive, NumPy returns the bytes.
        if not isinstance(array, np.ndarray):
            raise _unreadable(path, f"its '{name}' is not a NumPy array")
    return [GivenArray(array, f"'{name}' in '{path}'") for name, array in found.items()]


def _unreadable(path: str, reason: str) -> UsageError:
    return UsageError(f"cannot read '{path}': {reason}")


def check_inputs(function: Any, given: Sequence[GivenArray]) -> None:
    """Raises UsageError if the arrays do not fit the arguments of a function."""
    from mlir_shard.runtime import arrays
    from mlir_shard.runtime.error import RunError
    from mlir_shard.runtime.interface import argument_specs

    specs = argument_specs(function)
    _check_number("expects", specs, given)
    for (name, spec), one in zip(specs.items(), given, strict=True):
        try:
            arrays.checked(name, one.array, spec)
        except RunError as error:
            raise UsageError(f"cannot use {one.source}: {error.message}") from None


def check_expected(function: Any, given: Sequence[GivenArray]) -> None:
    """Raises UsageError if the arrays cannot be the results of a function."""
    from mlir_shard.runtime import arrays
    from mlir_shard.runtime.interface import result_specs

    specs = result_specs(function)
    _check_number("returns", specs, given)
    for (name, spec), one in zip(specs.items(), given, strict=True):
        if one.array.shape != spec.shape:
            shape = arrays.shape_text(one.array.shape)
            raise UsageError(
                f"cannot use {one.source}: {name} of the program is {spec}, but the given array has shape {shape}"
            )


def _check_number(verb: str, specs: Mapping[str, TensorSpec], given: Sequence[GivenArray]) -> None:
    if len(specs) != len(given):
        sources = " and ".join(one.source for one in given) or "none"
        wanted = ", ".join(map(str, specs.values()))
        raise UsageError(f"the program {verb} {len(specs)} arrays, not {len(given)}, {sources}: ({wanted})")


def check_output(path: str) -> None:
    """Raises UsageError, before a program is run, if results cannot be written to a path."""
    written = f"results are written to a {SEVERAL} file, or a single result to a {ONE} file"
    output.check_form(path, written)
    if not path.endswith((ONE, SEVERAL)):
        raise UsageError(f"--output={path}: {written}")
    output.check(path)


def check_count(path: str, results: int) -> None:
    """Raises UsageError if the file cannot contain this number of results."""
    if path.endswith(ONE) and results != 1:
        raise UsageError(
            f"--output={path}: a {ONE} file holds one result, but the program has {results}: use {SEVERAL}"
        )


def write(path: str, results: Sequence[Any]) -> None:
    """Writes the results to a file; raises UsageError if that fails."""
    import numpy as np

    packed = io.BytesIO()
    if path.endswith(ONE):
        np.save(packed, results[0], allow_pickle=False)
    else:
        np.savez(packed, **{f"result{index}": array for index, array in enumerate(results)})
    output.write(path, packed.getvalue())
