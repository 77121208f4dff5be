# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The LAPACK custom calls of JAX on CPUs (`lapack_spotrf_ffi`, ...), computed with SciPy's LAPACK.

Operands and results are batches of matrices, as in the FFI handlers of jaxlib.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from mlir_shard.runtime import arrays
from mlir_shard.runtime.arrays import Array, TensorSpec
from mlir_shard.runtime.error import RunError

_TARGET = re.compile(r"lapack_([sdcz])([a-z0-9]+)_ffi")
_SYMBOL = re.compile(r"lapack_[sdcz][a-z0-9]+_ffi\{[\w=,]*\}\([\w<>,]*\)->\([\w<>,]*\)")
_SPEC = re.compile(r"tensor<((?:\d+x)*)([\w<>]+?)>(?=,|$)")


class Routines:
    """The routines of BLAS and LAPACK for one element type, by their names without its letter."""

    def __init__(self, letter: str) -> None:
        self._letter = letter

    def __getattr__(self, name: str) -> Any:
        blas, lapack = _libraries()
        return getattr(blas if name == "trsm" else lapack, self._letter + name)


@cache
def _libraries() -> tuple[ModuleType, ModuleType]:
    # Ranks share the cores of a machine.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from scipy.linalg import blas, lapack

    return blas, lapack


Options = Mapping[str, int]
Routine = Callable[..., Sequence[Any]]
# By name without the type letter: computes one element of the batch.
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
    # SciPy counts rows from 0.
    return factors, pivots + 1, info


@_routine("geqrf")
def _geqrf(routines: Routines, options: Options, a: Array) -> Sequence[Any]:
    factors, tau, _, _ = routines.geqrf(a)
    return factors, tau


@_routine("geqp3")
def _geqp3(routines: Routines, options: Options, a: Array, pivots: Array) -> Sequence[Any]:
    if pivots.any():
        raise RunError("geqp3 with fixed columns is not supported: SciPy does not take pivots")
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
    """The complex eigenvectors of a real matrix: two columns are the real and imaginary parts of a conjugate pair."""
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
    """Whether a custom call of this target can be computed."""
    found = _TARGET.fullmatch(target)
    return found is not None and found[2] in _ROUTINES


@dataclass(frozen=True, slots=True)
class LapackCall:
    """A call with the types of its local operands and results."""

    target: str
    options: tuple[tuple[str, int], ...]
    operands: tuple[TensorSpec, ...]
    results: tuple[TensorSpec, ...]

    @property
    def symbol(self) -> str:
        """The symbol that compiled code calls with the addresses of the operands and results."""
        options = ",".join(f"{name}={value}" for name, value in self.options)
        operands, results = (",".join(map(str, side)) for side in (self.operands, self.results))
        return f"{self.target}{{{options}}}({operands})->({results})"

    @classmethod
    def of_symbol(cls, symbol: str) -> LapackCall:
        """Returns the call with this symbol, the inverse of `symbol`."""
        target, options, operands, results = re.split(r"\{|\}\(|\)->\(", symbol.removesuffix(")"))
        pairs = (one.split("=") for one in options.split(",") if one)
        return cls(target, tuple((name, int(value)) for name, value in pairs), _specs(operands), _specs(results))

    def __call__(self, operands: Sequence[Array], results: Sequence[Array]) -> None:
        """Computes the results in place; results that the options disable are zero."""
        found = _TARGET.fullmatch(self.target)
        assert found
        routine, routines, options = _ROUTINES[found[2]], Routines(found[1]), dict(self.options)
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


def _specs(text: str) -> tuple[TensorSpec, ...]:
    return tuple(
        TensorSpec(tuple(map(int, shape.split("x")[:-1])), element_type) for shape, element_type in _SPEC.findall(text)
    )


class LapackFunctions:
    """The LAPACK functions that a program calls. They are valid while this object is alive.

    Args:
        text: the program, in the LLVM dialect.
    """

    def __init__(self, text: str) -> None:
        self._failure: RunError | None = None
        calls = [LapackCall.of_symbol(symbol) for symbol in sorted(set(_SYMBOL.findall(text)))]
        self._functions = {call.symbol: self._function(call) for call in calls}

    @property
    def addresses(self) -> dict[str, int]:
        """The address of each function, by symbol."""
        return {
            symbol: ctypes.cast(function, ctypes.c_void_p).value or 0 for symbol, function in self._functions.items()
        }

    def check(self) -> None:
        """Raises RunError if a function has failed since the last check."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _function(self, call: LapackCall) -> Any:
        specs = (*call.operands, *call.results)

        def compute(*addresses: int) -> None:
            # Exceptions cannot propagate through compiled code.
            try:
                views = [_at(address, spec) for address, spec in zip(addresses, specs, strict=True)]
                call(views[: len(call.operands)], views[len(call.operands) :])
            except Exception as error:
                self._failure = self._failure or RunError(f"'{call.target}' failed: {error}")

        return ctypes.CFUNCTYPE(None, *([ctypes.c_void_p] * len(specs)))(compute)


def _at(address: int, spec: TensorSpec) -> Array:
    dtype = arrays.storage_dtype(spec.element_type)
    memory: Any = (ctypes.c_char * (prod(spec.shape) * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype).reshape(spec.shape)
