# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Callbacks from compiled code to functions on arrays in its process, which NumPy and SciPy compute."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from mlir_shard.runtime import arrays
from mlir_shard.runtime.arrays import Array, TensorSpec
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.launch.libraries import fourier, lapack

PREFIX = "array_call."
_SYMBOL = re.compile(re.escape(PREFIX) + r"\w+\{[\w=,]*\}\([\w<>,]*\)->\([\w<>,]*\)")
_SPEC = re.compile(r"tensor<((?:\d+x)*)([\w<>]+?)>(?=,|$)")


@dataclass(frozen=True, slots=True)
class ArrayCall:
    """A call of a function of this process on arrays, with the types of its local operands and results.

    Args:
        target: the target of a LAPACK custom call, or `fourier.TARGET`.
        options: the options of the function, by name.
    """

    target: str
    options: tuple[tuple[str, int], ...]
    operands: tuple[TensorSpec, ...]
    results: tuple[TensorSpec, ...]

    @property
    def symbol(self) -> str:
        """The symbol that compiled code calls with the addresses of the operands and results."""
        options = ",".join(f"{name}={value}" for name, value in self.options)
        operands, results = (",".join(map(str, side)) for side in (self.operands, self.results))
        return f"{PREFIX}{self.target}{{{options}}}({operands})->({results})"

    @classmethod
    def of_symbol(cls, symbol: str) -> ArrayCall:
        """Returns the call with this symbol, the inverse of `symbol`."""
        target, options, operands, results = re.split(r"\{|\}\(|\)->\(", symbol.removeprefix(PREFIX).removesuffix(")"))
        pairs = (one.split("=") for one in options.split(",") if one)
        return cls(target, tuple((name, int(value)) for name, value in pairs), _specs(operands), _specs(results))

    def __call__(self, operands: Sequence[Array], results: Sequence[Array]) -> None:
        """Computes the results in place."""
        if self.target == fourier.TARGET:
            fourier.compute(dict(self.options), operands, results)
        else:
            lapack.compute(self.target, dict(self.options), operands, results)


def _specs(text: str) -> tuple[TensorSpec, ...]:
    return tuple(
        TensorSpec(tuple(map(int, shape.split("x")[:-1])), element_type) for shape, element_type in _SPEC.findall(text)
    )


class ArrayFunctions:
    """The functions that compute the array calls of a program. Their addresses are valid while this object is alive.

    Args:
        text: the program, in the LLVM dialect.
    """

    def __init__(self, text: str) -> None:
        self._failure: RunError | None = None
        calls = [ArrayCall.of_symbol(symbol) for symbol in sorted(set(_SYMBOL.findall(text)))]
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

    def _function(self, call: ArrayCall) -> Any:
        specs = (*call.operands, *call.results)

        def compute(*addresses: int) -> None:
            # Exceptions cannot propagate through compiled code: `check` raises them.
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
