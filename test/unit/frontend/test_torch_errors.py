# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of errors about operators of torch without a lowering: they name the operators and the lines that call them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

import mlir_shard as ms

X = torch.ones(4, 3)
FILE = re.escape(__file__)


class Root(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.linalg.cholesky(x[:3])
        return y + torch.special.bessel_j0(y)


def inverse(x: torch.Tensor) -> torch.Tensor:
    y = torch.special.bessel_j0(x)
    return torch.linalg.inv(y[:3])


def error_of(function: Callable[..., Any], dialect: str = "stablehlo") -> str:
    with pytest.raises(ValueError, match="error: ") as caught:
        ms.from_torch(function, X, dialect=dialect)
    return str(caught.value)


def line_of(function: Callable[..., Any], offset: int) -> int:
    return function.__code__.co_firstlineno + offset


@pytest.mark.parametrize("dialect", ["stablehlo", "linalg", "tosa"])
def test_every_operator_of_a_module_without_a_lowering_is_named(dialect: str) -> None:
    first, *lines = error_of(Root(), dialect).splitlines()
    assert first == f"torch-mlir cannot lower the program to '{dialect}':"
    forward = Root.forward
    assert lines[0].startswith(
        f"  {__file__}:{line_of(forward, 1)}: error: operator 'aten.linalg_cholesky_ex' in "
        "`y = torch.linalg.cholesky(x[:3])` has no "
    )
    assert lines[-1].startswith(
        f"  {__file__}:{line_of(forward, 2)}: error: operator 'aten.special_bessel_j0' in "
        "`return y + torch.special.bessel_j0(y)` has no lowering"
    )
    assert lines[-1].endswith("; compute it with other operators")


def test_operators_of_functions_and_gradients_have_their_lines() -> None:
    lines = error_of(inverse).splitlines()[1:]
    assert [re.search(r":(\d+): error: operator '([^']*)'", line).groups() for line in lines] == [
        (str(line_of(inverse, 1)), "aten.special_bessel_j0"),
        (str(line_of(inverse, 2)), "aten.linalg_inv_ex"),
    ]
    gradient = torch.func.grad(lambda x: torch.special.i1e(x).sum())
    assert re.search(rf"{FILE}:\d+: error: operator 'aten.special_i1e'", error_of(gradient))


def test_a_dialect_with_a_lowering_is_recommended() -> None:
    message = error_of(lambda x: torch.sort(x, 1)[0], "linalg")
    assert re.search(r"'aten.sort' in .* has no lowering: .*'tm_tensor.sort'.*; dialect='stablehlo' ", message)


def test_locations_of_a_program_are_in_the_file_of_its_function() -> None:
    module = ms.from_torch(lambda x: x @ x.mT, X).module
    assert re.search(rf'loc\("{FILE}":\d+:0\)', module.operation.get_asm(enable_debug_info=True))


def branch(x: torch.Tensor) -> torch.Tensor:
    return x if x.sum() > 0 else -x


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (branch, r"the function depends in `return x if x.sum\(\) > 0 else -x` on elements of tensors, which are not"),
        (lambda x: x[x > 0], r"operator 'aten.index.Tensor' in `.*` has the dynamic shape \(u0\), which depends on"),
        (lambda x: torch.corrcoef(x), r"operator 'aten.equal' in `.*` depends on elements of tensors, which are not"),
    ],
)
def test_shapes_and_branches_that_depend_on_elements(function: Callable[..., Any], complaint: str) -> None:
    assert re.match(rf"{FILE}:\d+: error: {complaint}.*: select|{FILE}:\d+: error: {complaint}", error_of(function))
