# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model of the zoo: a function of arrays, the shardings of its arguments, and the mesh."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

DEVICES = 8

Specs = Any
"""A pytree of `jax.sharding.PartitionSpec`, or a prefix of one, as `jax.jit` takes shardings."""


@dataclass(frozen=True)
class Model:
    """A function with its inputs.

    Attributes:
        name: unique in the zoo.
        function: what `jax.jit` takes; called where `mesh` is JAX's current mesh.
        arguments: pytrees of arrays.
        mesh: the size of each axis; the product is `DEVICES`.
        in_specs: for each argument.
        out_specs: for the results, None where they are left to propagation.
        tolerance: relative, where rounding adds up to more than usual.
        unlike_xla: why a target receives more bytes than XLA's program, where that is known.
        missing: for an engine, what it lacks to run the model.
        names_devices: whether the function says what each device does, so that one device cannot run it.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    mesh: dict[str, int]
    in_specs: tuple[Specs, ...]
    out_specs: Specs | None = None
    tolerance: float | None = None
    names_devices: bool = False
    unlike_xla: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)


MODELS: dict[str, Callable[[], Model]] = {}
"""What makes each model, by name."""


def model(function: Callable[[], Model]) -> Callable[[], Model]:
    """Adds a model to the zoo, under the name of the function that makes it."""
    MODELS[function.__name__] = function
    return function


class Draw:
    """Random arrays, the same for the same name."""

    def __init__(self, name: str) -> None:
        self._generator = np.random.default_rng(zlib.crc32(name.encode()))

    def normal(self, *shape: int, scale: float = 1.0) -> npt.NDArray[np.float32]:
        """Returns normally distributed numbers."""
        return (self._generator.standard_normal(shape) * scale).astype(np.float32)

    def weight(self, *shape: int) -> npt.NDArray[np.float32]:
        """Returns weights that keep the variance of what is multiplied by them."""
        fan_in = int(np.prod(shape[:-1])) if len(shape) > 2 else shape[0]
        return self.normal(*shape, scale=fan_in**-0.5)

    def integers(self, most: int, shape: Iterable[int]) -> npt.NDArray[np.int32]:
        """Returns integers from 0 up to `most`, exclusive."""
        return self._generator.integers(0, most, tuple(shape)).astype(np.int32)
