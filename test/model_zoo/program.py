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
        function: the function for `jax.jit`, which is called with `mesh` as JAX's current mesh.
        arguments: pytrees of arrays.
        mesh: the size of each axis; the product is at most `DEVICES`.
        in_specs: the specs of each argument.
        out_specs: the specs of the results, or None to leave them to propagation.
        tolerance: the maximum relative error, if rounding errors are larger than usual.
        unlike_xla: the reason why a target receives more bytes than XLA's program, if known.
        names_devices: whether the function specifies the work of each device, so that one device cannot run it.
        targets: the targets for which its program is partitioned.
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
        """Lowers the model with JAX."""
        from model_zoo.jax_models import measured

        return measured(self)


@dataclass(frozen=True)
class TorchModel:
    """A module or function of PyTorch with its inputs, lowered to one dialect.

    Attributes:
        name: unique in the zoo.
        function: the argument of `mlir_shard.from_torch`.
        arguments: pytrees of tensors.
        mesh: the size of each axis; the product is `DEVICES`.
        in_specs: the specs of each argument.
        out_specs: the specs of the results, or None to leave them to propagation.
        shard: the specs of parameters, by name or pattern.
        dialect: the dialect of the program.
        tolerance, unlike_xla: as in `Model`.
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
        """The targets for which its program is partitioned."""
        return TARGETS if self.dialect == "stablehlo" else TARGETS[:1]

    def measured(self) -> Measured:
        """Lowers the model with `from_torch`."""
        from model_zoo.torch_models import measured

        return measured(self)


@dataclass(frozen=True)
class Measured:
    """The measured parts of a model: the text of its program, and functions that are called on demand.

    Attributes:
        text: the global program.
        arrays: an input for each argument.
        hlo: returns the text of XLA's compiled program for the mesh.
        expected: returns the results without sharding.
    """

    text: str
    arrays: Sequence[npt.NDArray[Any]]
    hlo: Callable[[], str]
    expected: Callable[[], Sequence[npt.NDArray[Any]]]


MODELS: dict[str, Callable[[], Model | TorchModel]] = {}
"""The functions that make the models, by name."""


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
    """Random arrays, which are equal for equal names."""

    def __init__(self, name: str) -> None:
        self._generator = np.random.default_rng(zlib.crc32(name.encode()))

    def normal(self, *shape: int, scale: float = 1.0) -> npt.NDArray[np.float32]:
        """Returns normally distributed numbers."""
        return (self._generator.standard_normal(shape) * scale).astype(np.float32)

    def weight(self, *shape: int) -> npt.NDArray[np.float32]:
        """Returns weights that preserve the variance of the tensor that they are multiplied by."""
        fan_in = int(np.prod(shape[:-1])) if len(shape) > 2 else shape[0]
        return self.normal(*shape, scale=fan_in**-0.5)

    def integers(self, most: int, shape: Iterable[int]) -> npt.NDArray[np.int32]:
        """Returns integers from 0 up to `most`, exclusive."""
        return self._generator.integers(0, most, tuple(shape)).astype(np.int32)
