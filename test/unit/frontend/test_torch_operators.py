# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of decomposed operators of torch against torch itself, sharded along the batch and another dimension."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from small_torch_operators import BAGS_AND_POOLS, ELEMENTWISE, GRADIENTS, REDUCTIONS, SCATTERS, SHAPES, SORTS, arguments
from torch import nn
from torch.utils import _pytree as pytree

import mlir_shard as ms
from mlir_shard import P

EVERYWHERE = ELEMENTWISE | REDUCTIONS | SHAPES | BAGS_AND_POOLS
ONLY_IN_STABLEHLO = SORTS | SCATTERS


class Every(nn.Module):
    """A module that applies all operators, by the names of their arguments."""

    def __init__(self, operators: dict[str, Callable[..., Any]], names: tuple[str, ...]) -> None:
        super().__init__()
        self.operators, self.names = operators, names

    def forward(self, *args: torch.Tensor) -> dict[str, Any]:
        given = dict(zip(self.names, args, strict=True))
        return {
            name: operator(*(given[one] for one in inspect.signature(operator).parameters))
            for name, operator in self.operators.items()
        }


def spec(name: str, tensor: torch.Tensor, axes: list[str]) -> P | None:
    """Shards the batch along the first axis and the next dimension along the second one."""
    return None if name.startswith("of_") else P(*axes[: tensor.dim()])


@pytest.mark.parametrize(
    ("dialect", "axes", "batch", "as_module"),
    [
        ("stablehlo", {"data": 2}, 5, False),
        ("stablehlo", {"data": 2, "model": 3}, 4, True),
        ("linalg", {"data": 2, "model": 3}, 5, True),
    ],
)
def test_operators_have_the_values_of_torch(dialect: str, axes: dict[str, int], batch: int, as_module: bool) -> None:
    given = arguments(batch)
    operators = EVERYWHERE | ONLY_IN_STABLEHLO if dialect == "stablehlo" else EVERYWHERE
    if not as_module:
        # torch.export does not support gradients in a module.
        operators = operators | GRADIENTS
    every = Every(operators, tuple(given))
    specs = tuple(spec(name, tensor, list(axes)) for name, tensor in given.items())
    function = every if as_module else every.forward
    program = ms.from_torch(function, *given.values(), mesh=ms.Mesh(axes), in_shardings=specs, dialect=dialect)
    with program.compile() as run:
        got, wanted = run(*given.values()), every(*given.values())
        for name in operators:
            pairs = zip(pytree.tree_leaves(tuple_of(got[name])), pytree.tree_leaves(wanted[name]), strict=True)
            for one, other in pairs:
                array = np.asarray(one)
                assert array.dtype == other.numpy().dtype, name
                np.testing.assert_allclose(array, other.numpy(), rtol=2e-5, atol=2e-5, err_msg=name)


def tuple_of(result: Any) -> Any:
    return tuple(result) if isinstance(result, (tuple, list)) else result
