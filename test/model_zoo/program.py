# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model of the zoo: a function of arrays, the shardings of its arguments, and the mesh."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

DEVICES = 8
TARGETS = ("shard", "stablehlo")
DIALECTS = ("stablehlo", "linalg", "tosa")

Specs = Any
"""A pytree of `jax.sharding.PartitionSpec`, or a prefix of one, as `jax.jit` takes shardings."""


@dataclass(frozen=True)
class Model:
    """A function with its inputs.

    Attributes:
        name: unique in the zoo.
        function: what `jax.jit` takes; called where `mesh` is JAX's current mesh.
        arguments: pytrees of arrays.
        mesh: the size of each axis; the product is at most `DEVICES`.
        in_specs: for each argument.
        out_specs: for the results, None where they are left to propagation.
        tolerance: relative, where rounding adds up to more than usual.
        unlike_xla: why a target receives more bytes than XLA's program, where that is known.
        names_devices: whether the function says what each device does, so that one device cannot run it.
        targets: those that its program is partitioned for.
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
    targets: tuple[str, ...] = TARGETS

    def measured(self) -> Measured:
        """Lowers it with JAX."""
        from model_zoo.jax_models import measured

        return measured(self)


@dataclass(frozen=True)
class TorchModel:
    """A module or function of PyTorch with its inputs, lowered to one dialect.

    Attributes:
        name: unique in the zoo.
        function: what `mlir_shard.from_torch` takes.
        arguments: pytrees of tensors.
        mesh: the size of each axis; the product is `DEVICES`.
        in_specs: for each argument.
        out_specs: for the results, None where they are left to propagation.
        shard: specs of parameters, by name or pattern.
        dialect: that of the program.
        tolerance, unlike_xla: as of `Model`.
    """

    name: str
    function: Any
    arguments: tuple[Any, ...]
    mesh: dict[str, int]
    in_specs: tuple[Specs, ...]
    out_specs: Specs | None = None
    shard: Mapping[str, Any] = field(default_factory=dict)
    dialect: str = "stablehlo"
    tolerance: float | None = None
    unlike_xla: str = ""

    @property
    def targets(self) -> tuple[str, ...]:
        """Those that its program is partitioned for."""
        return TARGETS if self.dialect == "stablehlo" else TARGETS[:1]

    def measured(self) -> Measured:
        """Lowers it with `from_torch`."""
        from model_zoo.torch_models import measured

        return measured(self)


@dataclass(frozen=True)
class Measured:
    """What is measured of a model: the text of its program, and functions that are called where they are needed.

    Attributes:
        text: the global program.
        arrays: an input for each argument.
        hlo: returns the text of what XLA compiles for the mesh.
        expected: returns the results without sharding.
    """

    text: str
    arrays: Sequence[npt.NDArray[Any]]
    hlo: Callable[[], str]
    expected: Callable[[], Sequence[npt.NDArray[Any]]]


MODELS: dict[str, Callable[[], Model | TorchModel]] = {}
"""What makes each model, by name."""


def model(function: Callable[[], Model]) -> Callable[[], Model]:
    """Adds a model to the zoo, under the name of the function that makes it."""
    MODELS[function.__name__] = function
    return function


def torch_model(function: Callable[[], TorchModel]) -> Callable[[], TorchModel]:
    """Adds a model to the zoo in each dialect, under the name of the function that makes it and the dialect."""
    for dialect in DIALECTS:
        name = f"{function.__name__}_{dialect}"
        MODELS[name] = partial(lambda name, dialect: replace(function(), name=name, dialect=dialect), name, dialect)
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
