# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of destinations: each op that writes to an empty or filled tensor gets its own, directly before it."""

from __future__ import annotations

from typing import Any

import pytest
from runtime import in_process

import mlir_shard
from mlir_shard.ir.editing import operations_named
from mlir_shard.runtime.compile import compile_module
from mlir_shard.runtime.lowering.loops import destinations

SQUARE = "tensor<512x512xf32>"
TALL = "tensor<512x1x512xf32>"
MIB = 2**20
START = f"%zero = arith.constant 0.0 : f32\n%empty = tensor.empty() : {SQUARE}"
FILL = f"%init = linalg.fill ins(%zero : f32) outs(%empty : {SQUARE}) -> {SQUARE}"
FILLED_BY_A_GENERIC = f"""%init = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]}} outs(%empty : {SQUARE}) {{
^bb0(%old: f32):
  linalg.yield %zero : f32
}} -> {SQUARE}"""


def program(*ops: str) -> Any:
    body = "\n".join([START, *ops])
    text = f"func.func @main(%x: {SQUARE}) -> {SQUARE} {{\n{body}\n}}"
    return mlir_shard.parse(text, mlir_shard.create_context())


def product(result: str, of: str, by: str = "") -> str:
    return f"%{result} = linalg.matmul ins(%{of}, %{by or of} : {SQUARE}, {SQUARE}) outs(%init : {SQUARE}) -> {SQUARE}"


def transposed(result: str, of: str) -> str:
    by = "[[0, 1], [2]] output_shape [512, 1, 512]"
    return f"""%{result}0 = tensor.expand_shape %{of} {by} : {SQUARE} into {TALL}
%{result}1 = linalg.transpose ins(%{result}0 : {TALL}) outs(%view : {TALL}) permutation = [2, 1, 0]
%{result} = tensor.collapse_shape %{result}1 [[0, 1], [2]] : {TALL} into {SQUARE}"""


def before(op: Any) -> list[str]:
    """Returns the names of the two ops before an op."""
    ops = [one.operation for one in op.block.operations]
    place = ops.index(op)
    return [one.name for one in ops[place - 2 : place]]


@pytest.mark.parametrize(
    "init", [pytest.param(FILL, id="filled"), pytest.param(FILLED_BY_A_GENERIC, id="filled by a generic")]
)
def test_each_op_has_a_fill_just_before_it(init: str) -> None:
    module = program(init, *(product(*one) for one in ("ax", "ba", "cb")), f"return %c : {SQUARE}")

    destinations.separate(module)

    products = operations_named(module, "linalg.matmul")
    assert [before(one) for one in products] == [["tensor.empty", "linalg.fill"]] * 3
    assert len({str(one.operands[2].get_name()) for one in products}) == 3


def test_views_of_an_empty_tensor_are_empty_tensors() -> None:
    view = f"%view = tensor.expand_shape %empty [[0, 1], [2]] output_shape [512, 1, 512] : {SQUARE} into {TALL}"
    module = program(view, transposed("a", "x"), transposed("b", "a"), f"return %b : {SQUARE}")

    destinations.separate(module)

    ops = operations_named(module, "linalg.transpose")
    assert [before(one)[1] for one in ops] == ["tensor.empty"] * 2


def test_views_of_a_filled_tensor_are_filled_tensors() -> None:
    view = f"%view = tensor.expand_shape %init [[0, 1], [2]] output_shape [512, 1, 512] : {SQUARE} into {TALL}"
    module = program(FILL, view, transposed("a", "x"), transposed("b", "a"), f"return %b : {SQUARE}")

    destinations.separate(module)

    ops = operations_named(module, "linalg.transpose")
    assert [before(one) for one in ops] == [["tensor.empty", "linalg.fill"]] * 2


def test_what_is_inserted_into_is_written_to() -> None:
    half = "tensor<256x512xf32>"

    def inserted(result: str, of: str) -> str:
        return f"""%{result}0 = tensor.extract_slice %{of}[0, 0] [256, 512] [1, 1] : {SQUARE} to {half}
%{result} = tensor.insert_slice %{result}0 into %init[0, 0] [256, 512] [1, 1] : {half} into {SQUARE}"""

    module = program(FILL, inserted("a", "x"), inserted("b", "a"), f"return %b : {SQUARE}")

    destinations.separate(module)

    ops = operations_named(module, "tensor.insert_slice")
    assert [before(one) for one in ops] == [["tensor.empty", "linalg.fill"]] * 2


def test_a_fill_that_is_read_stays_for_what_reads_it() -> None:
    """An op that writes has its own fill, even if it is the last op to use the shared one."""
    module = program(FILL, product("a", "x", "init"), product("b", "a"), f"return %b : {SQUARE}")

    destinations.separate(module)

    read, written = operations_named(module, "linalg.matmul")
    fills = operations_named(module, "linalg.fill")
    assert len(fills) == 3
    assert read.operands[1] == fills[0].results[0]
    assert before(written) == ["tensor.empty", "linalg.fill"]


@pytest.mark.parametrize(
    "init", [pytest.param(FILL, id="filled"), pytest.param(FILLED_BY_A_GENERIC, id="filled by a generic")]
)
def test_memory_is_in_use_from_the_op_on_that_writes_to_it(init: str) -> None:
    chain = [product(*one) for one in ("ax", "ba", "cb", "dc", "ed")]
    module = program(init, *chain, f"return %e : {SQUARE}")

    compiled = compile_module(module, with_unsharded=False, lower=in_process.lower_whole).sharded

    assert compiled.peak_bytes == 3 * MIB
