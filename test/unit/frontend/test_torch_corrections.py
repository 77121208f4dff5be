# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of operators that torch-mlir lowers wrongly or cannot import, against torch itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import mlir_shard as ms
from mlir_shard import P

MESH = ms.Mesh({"data": 2})
RANDOM = torch.Generator().manual_seed(0)


def check(function: Callable[..., Any], *args: torch.Tensor) -> None:
    """Compares a function with the program from it, whose first argument is sharded along its first dimension."""
    program = ms.from_torch(function, *args, mesh=MESH, in_shardings=(P("data"), *[None] * (len(args) - 1)))
    got = program.compile("pjrt")(*args)
    wanted = function(*args)
    for one, other in zip(*((each,) if not isinstance(each, tuple) else each for each in (got, wanted)), strict=True):
        np.testing.assert_allclose(np.asarray(one), other.detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("divisor", [4, -4])
def test_remainders_have_the_sign_of_the_divisor(dtype: torch.dtype, divisor: int) -> None:
    x = torch.arange(-6, 6, dtype=dtype).reshape(4, 3)
    check(lambda x: x % divisor, x)
    check(torch.remainder, x, torch.tensor([divisor, 5, -3], dtype=dtype).expand(4, 3).contiguous())


def test_fmod_has_the_sign_of_the_dividend() -> None:
    x = torch.arange(-6.0, 6.0).reshape(4, 3) / 4
    check(lambda x: torch.fmod(x, -0.7), x)
    check(lambda x: torch.fmod(x * 1e8, 3.0), x)
    check(torch.fmod, (x * 4).to(torch.int32), torch.tensor([4, -5, 3], dtype=torch.int32).expand(4, 3).contiguous())


def test_nearest_exact_resizes() -> None:
    x = torch.randn(2, 3, 7, 8, generator=RANDOM)
    check(lambda x: functional.interpolate(x, size=(5, 11), mode="nearest-exact"), x)


def test_negative_indices_count_from_the_end() -> None:
    x = torch.arange(24.0).reshape(4, 6)
    check(lambda x: x[torch.tensor([-1, 0, -4])], x)
    check(lambda x, i: x[:, i], x, torch.tensor([[-6, 5], [2, -1]]))
    check(lambda x, i, j: x[i, j], x, torch.tensor([-1, 0, 3]), torch.tensor([2, -2, -6]))
    check(lambda x, i, v: x.index_put((i,), v), x, torch.tensor([-1, 1]), torch.full((2, 6), 9.0))
    check(lambda x, m: torch.where(m, x, -x)[torch.arange(1, 3)], x, x > 5)
    # Sorted values may be negative, their places are not.
    check(lambda x, i: x[torch.sort(i)[0]], x, torch.tensor([2, -1, -3]))
    check(lambda x, i: x[:, torch.sort(i)[1]], x, torch.tensor([2, -1, -3]))
    check(lambda x: x[torch.arange(-2, 2)], x)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "dilation"),
    [(6, 3, 2, 0, 1), (7, 3, 2, 1, 1), (9, 2, 3, 1, 2), (8, 3, 3, 1, 1), (5, 5, 4, 2, 1)],
)
def test_max_pools_with_ceil_mode(size: int, kernel: int, stride: int, padding: int, dilation: int) -> None:
    x = torch.randn(2, 3, size, size + 1, generator=RANDOM)

    def pool(x: torch.Tensor) -> Any:
        return functional.max_pool2d(x, kernel, stride, padding, dilation, ceil_mode=True, return_indices=True)

    values, _ = pool(x)
    check(pool, x)
    padded = functional.max_pool2d(x, kernel, stride, padding, dilation, ceil_mode=False)
    # Some case has windows that only `ceil_mode` adds.
    assert values.shape >= padded.shape


def test_max_pools_of_volumes_with_ceil_mode() -> None:
    x = torch.randn(2, 3, 5, 7, 6, generator=RANDOM)
    check(lambda x: functional.max_pool3d(x, 3, 2, 1, ceil_mode=True), x)


@pytest.mark.parametrize("amounts", [(2, -1), (-1, 3, 1, -2), (-2, -1)])
@pytest.mark.parametrize("dialect", ["stablehlo", "linalg", "tosa"])
def test_pads_by_negative_amounts(amounts: tuple[int, ...], dialect: str) -> None:
    x = torch.randn(2, 3, 5, 7, generator=RANDOM)
    program = ms.from_torch(
        lambda x: functional.pad(x, amounts, value=3.0), x, mesh=MESH, in_shardings=(P("data"),), dialect=dialect
    )
    np.testing.assert_array_equal(np.asarray(program.compile()(x)), functional.pad(x, amounts, value=3.0))


def test_modules_whose_operators_the_importer_rewrites() -> None:
    x = torch.randn(2, 4, 6, 8, generator=RANDOM)
    check(nn.GroupNorm(2, 4), x)


def test_functions_without_a_signature() -> None:
    program = ms.from_torch(torch.relu, torch.zeros(4, 2), mesh=MESH)
    assert program.argument_names == ("arg0",)
