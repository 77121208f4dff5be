# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of unsigned integers and booleans of torch, whose types are signless in linalg and tosa."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mlir_shard as ms
from mlir_shard import P

MESH = ms.Mesh({"data": 2})
X = torch.tensor([[250, 3, 17], [200, 7, 0], [1, 129, 128], [0, 255, 127], [9, 8, 254]], dtype=torch.uint8)
OPERATORS = {
    "sum": lambda x: x + x,
    "difference": lambda x: -x - 3,
    "quotient": lambda x: x // 3,
    "remainder": lambda x: x % 7,
    "complement": lambda x: ~x,
    "largest": lambda x: x.amax(1),
    "place of the smallest": lambda x: x.argmin(1),
    "comparison": lambda x: x > 100,
    "total": lambda x: x.sum(1),
    "bounds": lambda x: x.clamp(10, 200),
    "scaled": lambda x: x / 4,
    "wider": lambda x: x.to(torch.int16),
    "narrower": lambda x: (x.to(torch.int32) * 3).to(torch.uint8),
    "of floats": lambda x: (x.float() - 20.5).to(torch.uint8),
    "chosen": lambda x: torch.where(x > 9, x, 1),
    "joined": lambda x: torch.cat([x, x.flip(1)], 1),
    "32 bits": lambda x: (x.to(torch.uint32) * 20_000_000).to(torch.int64),
    "booleans": lambda x: (x > 100) & (x < 220),
}


@pytest.mark.parametrize(
    ("dialect", "engine"), [("stablehlo", "mpi"), ("stablehlo", "pjrt"), ("linalg", "mpi"), ("tosa", "mpi")]
)
def test_results_have_the_values_and_dtypes_of_torch(dialect: str, engine: str) -> None:
    # torch-mlir has no lowering of 32 bits to tosa.
    chosen = {name: one for name, one in OPERATORS.items() if (dialect, name) != ("tosa", "32 bits")}

    def every(x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {name: function(x) for name, function in chosen.items()}

    program = ms.from_torch(every, X, mesh=MESH, in_shardings=(P("data"),), dialect=dialect)
    with program.compile(engine) as run:
        got = run(X)
        for name, wanted in every(X).items():
            array = np.asarray(got[name])
            assert array.dtype == wanted.numpy().dtype, name
            np.testing.assert_array_equal(array, wanted.numpy(), err_msg=name)
        # A result can be the argument of the next call.
        np.testing.assert_array_equal(run(got["sum"])["sum"], every(X + X)["sum"])


def test_buffers_that_a_module_updates_stay_unsigned() -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.full((3,), 250, dtype=torch.uint8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count += 1
            return x // self.count

    with ms.from_torch(Counter(), X, mesh=MESH, in_shardings=(P("data"),), dialect="linalg").compile() as run:
        for count in (251, 252):
            np.testing.assert_array_equal(run(X), X // count)
        assert np.asarray(run.state["count"]).tolist() == [252] * 3


def test_dtypes_that_are_not_imported_are_named() -> None:
    with pytest.raises(
        ValueError, match=r"argument '.*' has the dtype torch.uint16, which torch-mlir does not import: use int32"
    ):
        ms.from_torch(lambda x: x + 1, X.to(torch.uint16), mesh=MESH)
