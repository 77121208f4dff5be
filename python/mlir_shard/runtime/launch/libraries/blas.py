# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""OpenBLAS, from the package `scipy-openblas32`, for programs that call its C interface."""

from __future__ import annotations

import ctypes
import os
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from mlir_shard.runtime.error import RunError

_PACKAGE: Final = "scipy_openblas32"
# The package adds a prefix to the symbols.
_PREFIX: Final = "scipy_"
_SYMBOL = re.compile(r"llvm\.func @(cblas_[sdcz]gem[mv]|openblas_get_num_threads)\(")
_THREADS: Final = "OPENBLAS_NUM_THREADS"
GET_THREADS: Final = "openblas_get_num_threads"
"""The function that returns the number of threads as an i32; it takes no arguments."""


@cache
def library_path() -> Path | None:
    """Returns the path of the shared library; None if the package is not installed or does not contain it."""
    spec = find_spec(_PACKAGE)
    places = spec.submodule_search_locations if spec else None
    found = [
        path for place in places or () for path in Path(place, "lib").glob("libscipy_openblas.*") if path.is_file()
    ]
    return next((path for path in found if path.suffix in (".so", ".dylib")), None)


def addresses(text: str) -> dict[str, int]:
    """Returns the address of each BLAS function that a program in the LLVM dialect calls, by symbol.

    Raises:
        RunError: the program calls BLAS, but the library is not installed.
    """
    symbols = set(_SYMBOL.findall(text))
    if not symbols:
        return {}
    path = library_path()
    if path is None:
        raise RunError("the program calls OpenBLAS, which is not installed here: pip install 'mlir-shard[run]'")
    library = _library(path)
    return {one: ctypes.cast(library[_PREFIX + one], ctypes.c_void_p).value or 0 for one in symbols}


def set_threads(threads: int) -> None:
    """Sets the number of threads of OpenBLAS in this process, if it is installed."""
    path = library_path()
    if path is not None:
        _library(path)[f"{_PREFIX}openblas_set_num_threads"](threads)


@cache
def _library(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    # Ranks share the cores of a machine; by default OpenBLAS would use all of them.
    given = os.environ.get(_THREADS, "")
    library[f"{_PREFIX}openblas_set_num_threads"](int(given) if given.isdecimal() else 1)
    return library
