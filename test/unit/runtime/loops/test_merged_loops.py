# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of loops over contiguous memory that are merged into one."""

from __future__ import annotations

import numpy as np
import pytest
from runtime import in_process

import mlir_shard
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.runtime.lowering.loops import merged_loops

LOOPS = "(d0, d1, d2)"


def iterators(maps: list[tuple[str, str]], kinds: str = "ppp") -> list[str]:
    """Returns the kinds of the remaining loops of an op with operands, and last a result, of these maps and types."""
    names = [f"%{number}" for number in range(len(maps))]
    types = [type_ for _, type_ in maps]
    kinds_text = ", ".join({"p": '"parallel"', "r": '"reduction"'}[one] for one in kinds)
    text = f"""
      func.func @main({", ".join(f"{name}: {type_}" for name, type_ in zip(names, types, strict=True))}) {{
        linalg.generic {{indexing_maps = [{", ".join(f"affine_map<{LOOPS} -> {one}>" for one, _ in maps)}],
                        iterator_types = [{kinds_text}]}}
            ins({", ".join(names[:-1])} : {", ".join(types[:-1])}) outs({names[-1]} : {types[-1]}) {{
          ^bb0({", ".join(f"%e{number}: f32" for number in range(len(maps)))}):
            linalg.yield %e0 : f32
        }}
        return
      }}"""
    module = ir.Module.parse(text, mlir_shard.create_context())
    with module.context, ir.Location.unknown():
        merged_loops.merge(module)
    module.operation.verify()
    (op,) = operations_named(module, "linalg.generic")
    return ["p" if "parallel" in str(one) else "r" for one in op.attributes["iterator_types"]]


WHOLE = ("(d0, d1, d2)", "memref<4x6x8xf32>")
ROWS = ("(d0, d1, d2)", "memref<4x6x8xf32, strided<[96, 16, 1], offset: ?>>")


@pytest.mark.parametrize(
    ("maps", "kinds", "left"),
    [
        pytest.param([WHOLE, WHOLE], "ppp", "p", id="contiguous"),
        pytest.param([ROWS, WHOLE], "ppp", "pp", id="a part of each row"),
        pytest.param([("(d2)", "memref<8xf32>"), WHOLE], "ppp", "pp", id="a bias"),
        pytest.param([("(d0)", "memref<4xf32>"), WHOLE], "ppp", "pp", id="a factor of rows"),
        pytest.param([WHOLE, ("(d2)", "memref<8xf32>")], "rrp", "rp", id="sums of columns"),
        pytest.param([WHOLE, ("(d0, d1)", "memref<4x6xf32>")], "ppr", "pr", id="sums of rows"),
        pytest.param([WHOLE, ("()", "memref<f32>")], "rrr", "r", id="a sum of all"),
        pytest.param([("(d2, d0, d1)", "memref<8x4x6xf32>"), WHOLE], "ppp", "pp", id="a transpose"),
        pytest.param([("(d0, d2, d1)", "memref<4x8x6xf32>"), WHOLE], "ppp", "ppp", id="a transpose of matrices"),
        pytest.param([("(d1, d0, d2)", "memref<6x4x8xf32>"), WHOLE], "ppp", "ppp", id="a transpose of rows"),
    ],
)
def test_loops_that_are_left(maps: list[tuple[str, str]], kinds: str, left: str) -> None:
    assert "".join(iterators(maps, kinds)) == left


def test_parts_of_memory_are_added_as_they_lie() -> None:
    text = """
      func.func @main(%x: tensor<4x6x16xf32>, %y: tensor<4x6x8xf32>) -> tensor<4x6x8xf32> {
        %0 = stablehlo.slice %x [0:4, 0:6, 3:11] : (tensor<4x6x16xf32>) -> tensor<4x6x8xf32>
        %1 = stablehlo.add %0, %y : tensor<4x6x8xf32>
        return %1 : tensor<4x6x8xf32>
      }"""
    x, y = np.arange(384, dtype=np.float32).reshape(4, 6, 16), np.ones((4, 6, 8), np.float32)
    np.testing.assert_array_equal(in_process.run(text, x, y)[0], x[:, :, 3:11] + 1)
