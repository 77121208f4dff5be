# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the rules of gather and scatter, and of the combiners of their partial results."""

from __future__ import annotations

import pytest
from rules.modules import ops, rule_of, spelled

from mlir_shard.rules import RuleCache
from mlir_shard.rules.reduction import reduction_op
from mlir_shard.sharding import ReductionOp


@pytest.mark.parametrize(
    ("shapes", "numbers", "sizes", "expected"),
    [
        # Rows of a table.
        (
            ("16x8", "5", "5x8"),
            "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1",
            "1, 8",
            "([k, j], [i])->([i, j]) {i=5, j=8, k=16} reduction=k",
        ),
        # A table with a single row.
        (
            ("1x8", "5x1", "5x8"),
            "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1",
            "1, 8",
            "([k, j], [i, l])->([i, j]) {i=5, j=8, k=1, l=1} need_replication=k,l",
        ),
        # Slices of one element along one dimension and of some along another; neither dimension is collapsed.
        (
            ("16x8x4", "2x5", "5x1x3x4"),
            "offset_dims = [1, 2, 3], start_index_map = [0, 1], index_vector_dim = 0",
            "1, 3, 4",
            "([j, l, m], [n, i])->([i, k, l, m]) {i=5, j=16, k=1, l=8, m=4, n=2} "
            "reduction=j need_replication=k,l,n blocked_propagation=l",
        ),
        # A batching dimension with separate indices for each batch.
        (
            ("16x3x8", "5x3x1", "5x3x8"),
            "offset_dims = [2], collapsed_slice_dims = [0], operand_batching_dims = [1], "
            "start_indices_batching_dims = [1], start_index_map = [0], index_vector_dim = 2",
            "1, 1, 8",
            "([l, j, k], [i, j, m])->([i, j, k]) {i=5, j=3, k=8, l=16, m=1} reduction=l need_replication=m",
        ),
    ],
)
def test_gather(shapes: tuple[str, str, str], numbers: str, sizes: str, expected: str) -> None:
    operand, indices, result = (
        f"tensor<{shape}x{element}>" for shape, element in zip(shapes, ("f32", "i32", "f32"), strict=True)
    )
    op = (
        f'%0 = "stablehlo.gather"(%a, %i) {{dimension_numbers = #stablehlo.gather<{numbers}>, '
        f"slice_sizes = array<i64: {sizes}>}} : ({operand}, {indices}) -> {result}"
    )
    assert rule_of(f"%a: {operand}, %i: {indices}", op) == expected


def scatter(body: str, element: str = "f32", update: str = "5x8") -> str:
    """Returns a scatter that updates rows of a table."""
    table, updates = f"tensor<16x8x{element}>", f"tensor<{update}x{element}>"
    return f"""%0 = "stablehlo.scatter"(%a, %i, %u) ({{
      ^bb0(%x: tensor<{element}>, %y: tensor<{element}>):
        {body}
        stablehlo.return %r : tensor<{element}>
    }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}} : ({table}, tensor<5xi32>, {updates}) -> {table}"""


@pytest.mark.parametrize(
    ("body", "element", "type_", "combiner"),
    [
        ("%r = stablehlo.add %x, %y : tensor<f32>", "f32", "reduction", ReductionOp.SUM),
        ("%r = stablehlo.maximum %y, %x : tensor<f32>", "f32", "reduction", ReductionOp.MAX),
        # Combiners that no collective supports.
        ("%r = stablehlo.multiply %x, %y : tensor<f32>", "f32", "reduction", None),
        ("%r = stablehlo.or %x, %y : tensor<i1>", "i1", "reduction", None),
        # Bodies that may depend on the order of the updates, or do more than combine values.
        ("%r = stablehlo.or %x, %y : tensor<i8>", "i8", "need_replication", None),
        ("%r = stablehlo.subtract %x, %y : tensor<f32>", "f32", "need_replication", None),
        ("%r = stablehlo.add %x, %x : tensor<f32>", "f32", "need_replication", None),
        (
            "%q = stablehlo.negate %y : tensor<f32> %r = stablehlo.add %x, %q : tensor<f32>",
            "f32",
            "need_replication",
            ReductionOp.SUM,
        ),
    ],
)
def test_scatter(body: str, element: str, type_: str, combiner: ReductionOp | None) -> None:
    signature = f"(%a: tensor<16x8x{element}>, %i: tensor<5xi32>, %u: tensor<5x8x{element}>)"
    op = ops(f"{signature} {{\n {scatter(body, element)}\n return }}")[0]
    assert spelled(op) == f"([k, j], [i], [i, j])->([k, j]) {{i=5, j=8, k=16}} {type_}=i"
    assert reduction_op(op) is combiner


def test_scatter_of_what_came_in() -> None:
    signature = "(%a: tensor<16x8xf32>, %i: tensor<5xi32>, %u: tensor<5x8xf32>)"
    text = scatter("").replace("stablehlo.return %r", "stablehlo.return %y")
    assert spelled(ops(f"{signature} {{\n {text}\n return }}")[0]).endswith("need_replication=i")


def test_scatter_of_parts_of_rows() -> None:
    text = scatter("%r = stablehlo.add %x, %y : tensor<f32>", update="5x6")
    expected = "([l, j], [i], [i, k])->([l, j]) {i=5, j=8, k=6, l=16} reduction=i need_replication=j,k"
    assert rule_of("%a: tensor<16x8xf32>, %i: tensor<5xi32>, %u: tensor<5x6xf32>", text) == expected


def test_scatters_of_two_tables_that_differ_in_their_bodies() -> None:
    def both(number: int, second: str) -> str:
        table, updates = "tensor<16xf32>", "tensor<5xf32>"
        return f"""%{number}:2 = "stablehlo.scatter"(%a, %a, %i, %u, %u) ({{
          ^bb0(%w: tensor<f32>, %x: tensor<f32>, %y: tensor<f32>, %z: tensor<f32>):
            %q = stablehlo.add %w, %y : tensor<f32>
            %r = stablehlo.{second} %x, %z : tensor<f32>
            stablehlo.return %q, %r : tensor<f32>, tensor<f32>
        }}) {{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
          scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}} :
          ({table}, {table}, tensor<5xi32>, {updates}, {updates}) -> ({table}, {table})"""

    same, other, _ = ops(f"""(%a: tensor<16xf32>, %i: tensor<5xi32>, %u: tensor<5xf32>) {{
        {both(0, "add")}
        {both(1, "minimum")}
        return
      }}""")
    cache = RuleCache()
    rule = "([j], [j], [i], [i], [i])->([j], [j]) {i=5, j=16}"
    for op, type_ in ((same, "reduction"), (other, "need_replication")):
        assert spelled(op) == f"{rule} {type_}=i"
        assert getattr(cache.rule_for(op), f"{type_}_factors") == (0,)
