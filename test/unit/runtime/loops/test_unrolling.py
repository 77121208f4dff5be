# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of loops of local programs that LLVM must not unroll, and of those that it may unroll."""

from __future__ import annotations

import pytest

import mlir_shard
from mlir_shard.host import ir
from mlir_shard.ir.editing import operations_named
from mlir_shard.runtime.lowering.loops import unrolling

KEPT, IN_PARTS, FREE = "kept", "in parts", "free"


def annotations(loops: str) -> list[str]:
    """Returns the annotation of each loop of a function on memory, from the outermost to the innermost."""
    constants = [f"%c{one} = arith.constant {one} : index" for one in (0, 1, 3, 64, 256, 257, 1000)]
    text = f"""
      func.func @main(%x: memref<1000x1000xf32>, %y: memref<1000xf32>, %at: memref<1000xindex>, %b: memref<1000xi8>,
                      %n: index) {{
        {" ".join(constants)}
        {loops}
        return
      }}"""
    module = ir.Module.parse(text, mlir_shard.create_context())
    unrolling.limit(module)
    found = []
    for op in operations_named(module, "scf.for"):
        said = str(op.attributes["loop_annotation"]) if "loop_annotation" in op.attributes else ""
        assert ("disable = true" in said) == bool(said)
        found.append(IN_PARTS if "count = 4" in said else KEPT if said else FREE)
    return found


def nest(outer: str, inner: str, body: str) -> str:
    """Returns two nested loops."""
    return f"scf.for %i = %c0 to {outer} step %c1 {{ scf.for %j = %c0 to {inner} step %c1 {{ {body} }} }}"


SCALE = """
  %0 = memref.load %x[%i, %j] : memref<1000x1000xf32>
  %1 = arith.addf %0, %0 : f32
  memref.store %1, %x[%i, %j] : memref<1000x1000xf32>"""


def add(place: str) -> str:
    """Returns ops that add to an element of `y`."""
    return f"""
      %0 = memref.load %x[%i, %j] : memref<1000x1000xf32>
      %1 = memref.load %y[{place}] : memref<1000xf32>
      %2 = arith.addf %0, %1 : f32
      memref.store %2, %y[{place}] : memref<1000xf32>"""


ADD_BYTES = """
  %0 = memref.load %b[%i] : memref<1000xi8>
  %1 = memref.load %b[%j] : memref<1000xi8>
  %2 = arith.addi %0, %1 : i8
  memref.store %2, %b[%j] : memref<1000xi8>"""


SCATTER = """
  %place = memref.load %at[%j] : memref<1000xindex>
  %0 = memref.load %x[%i, %j] : memref<1000x1000xf32>
  memref.store %0, %y[%place] : memref<1000xf32>"""


@pytest.mark.parametrize(
    ("loops", "expected"),
    [
        pytest.param(nest("%c1000", "%c1000", SCALE), [KEPT, KEPT], id="long loops"),
        pytest.param(nest("%c1000", "%c3", SCALE), [KEPT, FREE], id="a short inner loop"),
        pytest.param(nest("%c3", "%c3", SCALE), [FREE, FREE], id="a window"),
        pytest.param(nest("%c1000", "%n", SCALE), [KEPT, FREE], id="an unknown number of iterations"),
        pytest.param(nest("%c1000", "%c1000", add("%i")), [KEPT, IN_PARTS], id="a sum along the inner loop"),
        pytest.param(nest("%c1000", "%c1000", add("%j")), [KEPT, KEPT], id="many sums along the outer loop"),
        pytest.param(nest("%c1000", "%c64", add("%j")), [KEPT, FREE], id="sums in registers along the outer loop"),
        pytest.param(nest("%c1000", "%c256", ADD_BYTES), [KEPT, FREE], id="as many sums as registers hold"),
        pytest.param(nest("%c1000", "%c257", ADD_BYTES), [KEPT, KEPT], id="one more than registers hold"),
        pytest.param(nest("%c1000", "%c1000", SCATTER), [KEPT, FREE], id="places that are read from memory"),
    ],
)
def test_loops_that_llvm_may_unroll(loops: str, expected: list[str]) -> None:
    assert annotations(loops) == expected
