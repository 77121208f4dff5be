# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The LAPACK custom calls of JAX on CPUs (`lapack_spotrf_ffi`, ...), computed with SciPy's LAPACK.

Operands and results are batches of matrices, as in the FFI handlers of jaxlib.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from mlir_shard.runtime.arrays import Array
from mlir_shard.runtime.error import RunError

_TARGET = re.compile(r"lapack_([sdcz])([a-z0-9]+)_ffi")


class Routines:
    """The routines of BLAS and LAPACK for one element type, by their names without the type letter."""

    def __init__(self, letter: str) -> None:
        self._letter = letter

    def __getattr__(self, name: str) -> Any:
        blas, lapack = _libraries()
        return getattr(blas if name == "trsm" else lapack, self._letter + name)


@cache
def _libraries() -> tuple[ModuleType, ModuleType]:
    # Ranks share the cores of a machine, so each uses one thread.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from scipy.linalg import blas, lapack

    return blas, lapack


Options = Mapping[str, int]
Routine = Callable[..., Sequence[Any]]
# By name without the type letter: the function that computes one element of the batch.
_ROUTINES: dict[str, Routine] = {}
# The rank of the first operand without batch dimensions, if it is not 2.
_RANKS = {"gtsv": 1}


def _routine(*names: str) -> Callable[[Routine], Routine]:
    def register(function: Routine) -> Routine:
        _ROUTINES.update(dict.fromkeys(names, function))
        return function

    return register


def _is(options: Options, name: str, letter: str) -> bool:
    return options[name] == ord(letter)


@_routine("potrf")
def _potrf(routines: Routines, options: Options, a: Array) -> Sequence[Any]:
    factor, info = routines.potrf(a, lower=_is(options, "uplo", "L"), clean=False)
    return factor, info


@_routine("getrf")
def _getrf(routines: Routines, options: Options, a: Array) -> Sequence[Any]:
    factors, pivots, info = routines.getrf(a)
    # SciPy's pivots are 0-based.
    return factors, pivots + 1, info


@_routine("geqrf")
def _geqrf(routines: Routines, options: Options, a: Array) -> Sequence[Any]:
    factors, tau, _, _ = routines.geqrf(a)
    return factors, tau


@_routine("geqp3")
def _geqp3(routines: Routines, options: Options, a: Array, pivots: Array) -> Sequence[Any]:
    if pivots.any():
        raise RunError("geqp3 with fixed columns is not supported: SciPy does not accept pivots")
    factors, pivots, tau, _, _ = routines.geqp3(a)
    return factors, pivots, tau


@_routine("orgqr", "ungqr")
def _orgqr(routines: Routines, options: Options, a: Array, tau: Array) -> Sequence[Any]:
    make = routines.ungqr if np.iscomplexobj(a) else routines.orgqr
    return (make(a, tau)[0],)


@_routine("ormqr", "unmqr")
def _ormqr(routines: Routines, options: Options, a: Array, tau: Array, c: Array) -> Sequence[Any]:
    apply, transposed = (routines.unmqr, "C") if np.iscomplexobj(a) else (routines.ormqr, "T")
    side, trans = "L" if options["left"] else "R", transposed if options["transpose"] else "N"
    work = int(apply(side, trans, a, tau, c, -1)[1][0].real)
    return (apply(side, trans, a, tau, c, work)[0],)


@_routine("syevd", "heevd")
def _syevd(routines: Routines, options: Options, a: Array) -> Sequence[Any]:
    compute = routines.heevd if np.iscomplexobj(a) else routines.syevd
    values, vectors, info = compute(a, compute_v=_is(options, "mode", "V"), lower=_is(options, "uplo", "L"))
    return vectors, values, info


@_routine("gesdd")
def _gesdd(routines: Routines, options: Options, a: Array, name: str = "gesdd") -> Sequence[Any]:
    vectors = not _is(options, "mode", "N")
    u, values, vt, info = getattr(routines, name)(a, compute_uv=vectors, full_matrices=_is(options, "mode", "A"))
    return (a, values, u, vt, info) if vectors else (a, values, None, None, info)


@_routine("gesvd")
def _gesvd(routines: Routines, options: Options, a: Array) -> Sequence[Any]:
    return _gesdd(routines, options, a, "gesvd")


@_routine("geev")
def _geev(routines: Routines, options: Options, a: Array) -> Sequence[Any]:
    left, right = (_is(options, name, "V") for name in ("compute_left", "compute_right"))
    *values, vl, vr, info = routines.geev(a, compute_vl=left, compute_vr=right)
    if len(values) > 1:
        vl, vr = (_unpacked(one, values[1]) for one in (vl, vr))
    return *values, vl if left else None, vr if right else None, info


def _unpacked(vectors: Array, imaginary: Array) -> Array:
    """Returns the complex eigenvectors of a real matrix, given pairs of columns for their real and imaginary parts."""
    if vectors.shape[-1] != imaginary.size:
        return vectors
    result = vectors.astype(np.result_type(vectors.dtype, np.complex64))
    first = np.flatnonzero(imaginary > 0)
    result[:, first] = vectors[:, first] + 1j * vectors[:, first + 1]
    result[:, first + 1] = result[:, first].conj()
    return result


@_routine("gehrd")
def _gehrd(routines: Routines, options: Options, a: Array) -> Sequence[Any]:
    return routines.gehrd(a, lo=options["low"] - 1, hi=options["high"] - 1)


@_routine("gees")
def _gees(routines: Routines, options: Options, a: Array) -> Sequence[Any]:
    vectors = _is(options, "mode", "V")
    form, selected, *values, found, _, info = routines.gees(lambda *_: None, a, compute_v=vectors, sort_t=0)
    return form, found if vectors else None, *values, selected, info


@_routine("sytrd", "hetrd")
def _sytrd(routines: Routines, options: Options, a: Array) -> Sequence[Any]:
    reduce = routines.hetrd if np.iscomplexobj(a) else routines.sytrd
    return reduce(a, lower=_is(options, "uplo", "L"))


@_routine("gtsv")
def _gtsv(routines: Routines, options: Options, lower: Array, diagonal: Array, upper: Array, b: Array) -> Sequence[Any]:
    _, _, _, x, info = routines.gtsv(lower[1:], diagonal, upper[:-1], b)
    return None, None, None, x, info


@_routine("trsm")
def _trsm(routines: Routines, options: Options, a: Array, b: Array) -> Sequence[Any]:
    return (
        routines.trsm(
            1.0,
            a,
            b,
            side=_is(options, "side", "R"),
            lower=_is(options, "uplo", "L"),
            trans_a="NTC".index(chr(options["trans_x"])),
            diag=_is(options, "diag", "U"),
        ),
    )


def is_known(target: str) -> bool:
    """Returns whether a custom call with this target can be computed."""
    found = _TARGET.fullmatch(target)
    return found is not None and found[2] in _ROUTINES


def compute(target: str, options: Options, operands: Sequence[Array], results: Sequence[Array]) -> None:
    """Computes the results in place; results that the options disable are zero."""
    found = _TARGET.fullmatch(target)
    assert found
    routine, routines = _ROUTINES[found[2]], Routines(found[1])
    for result in results:
        result[...] = 0
    if not all(array.size for array in operands):
        return
    batch = operands[0].shape[: operands[0].ndim - _RANKS.get(found[2], 2)]
    for place in np.ndindex(batch):
        made = routine(routines, options, *(array[place] for array in operands))
        for result, value in zip(results, made, strict=True):
            if value is not None:
                result[place] = value
