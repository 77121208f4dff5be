# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the rules of ops of each dialect, and of the reductions of these ops."""

from __future__ import annotations

import pytest
from rules.modules import ops, rule_of

from mlir_shard.dialects.contexts import create_context
from mlir_shard.host import ir
from mlir_shard.rules.computed_bodies import is_associative, is_identity, may_repeat_initial_values
from mlir_shard.rules.reduction import (
    Combination,
    Combiner,
    combination_of,
    neutral_number,
    reduction_op,
)
from mlir_shard.sharding import ReductionOp


@pytest.mark.parametrize(
    ("signature", "op", "expected"),
    [
        ("%a: tensor<4x8xi1>", "arith.andi %a, %a : tensor<4x8xi1>", "([i, j], [i, j])->([i, j]) {i=4, j=8}"),
        ("%a: f32", "arith.negf %a : f32", "None"),
        ("%a: tensor<4xf32>", "math.absf %a : tensor<4xf32>", "([i])->([i]) {i=4}"),
        ("", "arith.constant dense<0.0> : tensor<4xf32>", "None"),
        ("", "tensor.empty() : tensor<4xf32>", "None"),
        (
            "%a: tensor<4x8xf32>, %b: tensor<8xf32>",
            "linalg.matvec ins(%a, %b : tensor<4x8xf32>, tensor<8xf32>) outs(%c : tensor<4xf32>) -> tensor<4xf32>",
            "([i, j], [j], [i])->([i]) {i=4, j=8} reduction=j",
        ),
        (
            "%a: tensor<2x4x8xf32>, %b: tensor<2x8x16xf32>",
            "linalg.batch_matmul ins(%a, %b : tensor<2x4x8xf32>, tensor<2x8x16xf32>) "
            "outs(%d : tensor<2x4x16xf32>) -> tensor<2x4x16xf32>",
            "([i, j, l], [i, l, k], [i, j, k])->([i, j, k]) {i=2, j=4, k=16, l=8} reduction=l",
        ),
        (
            # Windows overlap, and each window is replicated.
            "%a: tensor<1x10x3xf32>, %b: tensor<3x3x5xf32>",
            "linalg.conv_1d_nwc_wcf ins(%a, %b : tensor<1x10x3xf32>, tensor<3x3x5xf32>) "
            "outs(%e : tensor<1x8x5xf32>) -> tensor<1x8x5xf32>",
            "([i, j, m], [l, m, k], [i, j, k])->([i, j, k]) {i=1, j=8, k=5, l=3, m=3} "
            "reduction=m need_replication=l permutation=j",
        ),
        (
            "%a: tensor<2x4x8xf32>, %b: tensor<8x2x16xf32>",
            "stablehlo.dot_general %a, %b, batching_dims = [0] x [1], contracting_dims = [2] x [0] : "
            "(tensor<2x4x8xf32>, tensor<8x2x16xf32>) -> tensor<2x4x16xf32>",
            "([i, j, l], [l, i, k])->([i, j, k]) {i=2, j=4, k=16, l=8} reduction=l",
        ),
        (
            "%a: tensor<8xf32>, %b: tensor<8x4xf32>",
            "stablehlo.dot %a, %b : (tensor<8xf32>, tensor<8x4xf32>) -> tensor<4xf32>",
            "([j], [j, i])->([i]) {i=4, j=8} reduction=j",
        ),
        (
            "%a: tensor<1x4xf32>",
            "stablehlo.broadcast_in_dim %a, dims = [0, 2] : (tensor<1x4xf32>) -> tensor<2x3x4xf32>",
            "([i, l])->([j, k, l]) {i=1, j=2, k=3, l=4}",
        ),
        (
            "%a: tensor<2x4x8xf32>",
            "stablehlo.transpose %a, dims = [2, 0, 1] : (tensor<2x4x8xf32>) -> tensor<8x2x4xf32>",
            "([j, k, i])->([i, j, k]) {i=8, j=2, k=4}",
        ),
        (
            "%p: tensor<i1>, %a: tensor<4xf32>",
            "stablehlo.select %p, %a, %a : tensor<i1>, tensor<4xf32>",
            "([], [i], [i])->([i]) {i=4}",
        ),
        (
            "%a: f32, %b: tensor<4x8xf32>, %i: index",
            "tensor.insert %a into %b[%i, %i] : tensor<4x8xf32>",
            "([], [i, j], [], [])->([i, j]) {i=4, j=8}",
        ),
        (
            # Two rows for each of three indices.
            "%a: tensor<2x8x4xf32>, %b: tensor<2x3xi32>, %n: tensor<1xi32>",
            '"tosa.row_gather"(%a, %b, %n) : (tensor<2x8x4xf32>, tensor<2x3xi32>, tensor<1xi32>) -> tensor<2x6x4xf32>',
            "([i, m, l], [i, j], [n])->([i, jk, l]) {i=2, j=3, k=2, l=4, m=8, n=1} need_replication=m",
        ),
    ],
)
def test_rules(signature: str, op: str, expected: str) -> None:
    initials = "%c: tensor<4xf32>, %d: tensor<2x4x16xf32>, %e: tensor<1x8x5xf32>"
    arguments = ", ".join(filter(None, (signature, initials)))
    assert rule_of(arguments, f"%0 = {op}") == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("8", "2x4", "([ij])->([i, j]) {i=2, j=4}"),
        ("2x4x8", "8x8", "([i, j, k])->([ij, k]) {i=2, j=4, k=8}"),
        ("4x1x8", "1x4x8x1", "([j, k, l])->([i, j, l, m]) {i=1, j=4, k=1, l=8, m=1}"),
        ("4x6", "2x12", "([ij, k])->([i, jk]) {i=2, j=2, k=6}"),
        # If sizes have no common divisor, their factors are in one shape only, up to the next common boundary.
        ("2x3x8", "3x2x8", "([i, k, m])->([j, l, m]) {i=2, j=3, k=3, l=2, m=8}"),
        ("1", "", "([i])->([]) {i=1}"),
        ("0x4", "4x0", "None"),
    ],
)
def test_reshapes(before: str, after: str, expected: str) -> None:
    one, other = (f"tensor<{shape + 'x' if shape else ''}f32>" for shape in (before, after))
    assert rule_of(f"%a: {one}", f"%0 = stablehlo.reshape %a : ({one}) -> {other}") == expected


def generic(combiner: str, element: str = "f32") -> str:
    """Returns a reduction of a matrix along its rows by a body that ends in `combiner`."""
    return f"""(%a: tensor<4x8x{element}>, %b: tensor<8x{element}>) {{
        %0 = linalg.generic {{
            indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>],
            iterator_types = ["reduction", "parallel"]
          }} ins(%a : tensor<4x8x{element}>) outs(%b : tensor<8x{element}>) {{
          ^bb0(%i: {element}, %o: {element}):
            {combiner}
            linalg.yield %s : {element}
          }} -> tensor<8x{element}>
        return
      }}"""


@pytest.mark.parametrize(
    ("combiner", "element", "expected"),
    [
        ("%s = arith.addf %i, %o : f32", "f32", ReductionOp.SUM),
        ("%s = arith.maximumf %o, %i : f32", "f32", ReductionOp.MAX),
        ("%s = arith.minsi %o, %i : i32", "i32", ReductionOp.MIN),
        ("%q = arith.mulf %i, %i : f32 %s = arith.addf %o, %q : f32", "f32", ReductionOp.SUM),
        # Combiners that collectives do not support, or compute differently.
        ("%s = arith.mulf %o, %i : f32", "f32", None),
        ("%s = arith.maxui %o, %i : i32", "i32", None),
        ("%s = arith.addi %o, %i : i1", "i1", None),
        # Bodies that do more with the accumulator than combine it.
        ("%q = arith.mulf %o, %i : f32 %s = arith.addf %o, %q : f32", "f32", None),
        ("%q = arith.negf %o : f32 %s = arith.addf %q, %i : f32", "f32", None),
        ("%s = arith.subf %o, %i : f32", "f32", None),
    ],
)
def test_reductions_of_bodies(combiner: str, element: str, expected: ReductionOp | None) -> None:
    assert reduction_op(ops(generic(combiner, element))[0]) is expected


def test_what_has_no_results_is_no_reduction() -> None:
    for op in ops("(%a: tensor<4xf32>) { stablehlo.custom_call @f(%a) : (tensor<4xf32>) -> ()\n return }"):
        assert reduction_op(op) is None


def test_reductions_of_named_ops() -> None:
    matmul, reduce, product, dot, _ = ops("""(%a: tensor<4x4xf32>, %b: tensor<4xf32>, %z: tensor<f32>) {
        %0 = linalg.matmul ins(%a, %a : tensor<4x4xf32>, tensor<4x4xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
        %1 = stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [0] :
          (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
        %2 = stablehlo.reduce(%a init: %z) applies stablehlo.multiply across dimensions = [0] :
          (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
        %3 = stablehlo.dot %a, %b : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4xf32>
        return
      }""")
    assert [reduction_op(op) for op in (matmul, reduce, product, dot)] == [
        ReductionOp.SUM,
        ReductionOp.MAX,
        None,
        ReductionOp.SUM,
    ]


@pytest.mark.parametrize(
    ("element", "least", "largest"),
    [("i1", 0, 1), ("ui1", 0, 1), ("i8", -128, 127), ("ui8", 0, 255), ("i64", -(2**63), 2**63 - 1)],
)
def test_neutral_elements_of_integers(element: str, least: int, largest: int) -> None:
    type_ = ir.Type.parse(element, create_context())
    all_bits = largest if least == 0 else -1
    expected = {
        Combiner.SUM: 0,
        Combiner.PRODUCT: 1,
        Combiner.MAX: least,
        Combiner.MIN: largest,
        Combiner.AND: all_bits,
        Combiner.OR: 0,
        Combiner.XOR: 0,
    }
    assert {one: neutral_number(one, type_) for one in Combiner} == expected


def test_what_may_be_combined_several_times() -> None:
    functions = {
        Combiner.SUM: lambda a, b: a + b,
        Combiner.PRODUCT: lambda a, b: a * b,
        Combiner.MAX: max,
        Combiner.MIN: min,
        Combiner.AND: lambda a, b: a & b,
        Combiner.OR: lambda a, b: a | b,
        Combiner.XOR: lambda a, b: a ^ b,
    }
    assert set(functions) == set(Combiner)
    for combiner, function in functions.items():
        is_idempotent = all(function(a, function(a, b)) == function(a, b) for a in range(4) for b in range(4))
        assert combiner.is_idempotent is is_idempotent, combiner


@pytest.mark.parametrize(
    ("name", "element", "expected"),
    [
        ("and", "i1", Combination((Combiner.AND,))),
        ("or", "i1", Combination((Combiner.OR,))),
        # A collective compares and adds booleans as bytes and reads all integers as signed, so these have no combiner.
        ("maximum", "i1", Combination()),
        ("minimum", "i1", Combination()),
        ("add", "i1", Combination()),
        ("maximum", "ui8", Combination()),
        ("maximum", "i8", Combination((Combiner.MAX,))),
    ],
)
def test_combinations_of_small_integers(name: str, element: str, expected: Combination) -> None:
    reduce, _ = ops(f"""(%a: tensor<4x4x{element}>, %z: tensor<{element}>) {{
        %0 = stablehlo.reduce(%a init: %z) applies stablehlo.{name} across dimensions = [0] :
          (tensor<4x4x{element}>, tensor<{element}>) -> tensor<4x{element}>
        return
      }}""")
    assert combination_of(reduce) == expected


@pytest.mark.parametrize(
    ("init", "body", "expected"),
    [
        ("0.0", "%1 = stablehlo.add %l, %r : tensor<f32>\n stablehlo.return %1 : tensor<f32>", True),
        ("1.0", "%1 = stablehlo.add %l, %r : tensor<f32>\n stablehlo.return %1 : tensor<f32>", False),
        ("1.0", "stablehlo.return %l : tensor<f32>", True),
        # The interpreter runs the body alone, without the values that it captures.
        ("0.0", "stablehlo.return %outer : tensor<f32>", False),
        ("0.0", "%1 = stablehlo.maximum %l, %outer : tensor<f32>\n stablehlo.return %1 : tensor<f32>", False),
    ],
)
def test_initial_values_that_may_be_combined_several_times(init: str, body: str, expected: bool) -> None:
    *_, reduce, _ = ops(f"""(%a: tensor<4xf32>, %outer: tensor<f32>) {{
        %z = stablehlo.constant dense<{init}> : tensor<f32>
        %0 = "stablehlo.reduce"(%a, %z) <{{dimensions = array<i64: 0>}}> ({{
        ^bb0(%l: tensor<f32>, %r: tensor<f32>):
          {body}
        }}) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
        return
    }}""")
    assert may_repeat_initial_values(reduce) is expected


@pytest.mark.parametrize(
    ("element", "body", "number", "expected"),
    [
        ("f32", "%1 = stablehlo.add %l, %r : tensor<f32>", 0.0, (True, True)),
        ("f32", "%1 = stablehlo.add %l, %r : tensor<f32>", 1.0, (True, False)),
        # The norm of two numbers is that of their absolute values.
        (
            "f64",
            "%2 = stablehlo.multiply %l, %l : tensor<f64>\n %3 = stablehlo.multiply %r, %r : tensor<f64>\n"
            "%4 = stablehlo.add %2, %3 : tensor<f64>\n %1 = stablehlo.sqrt %4 : tensor<f64>",
            0.0,
            (True, False),
        ),
        ("bf16", "%1 = stablehlo.subtract %l, %r : tensor<bf16>", 0.0, (False, False)),
        ("i32", "%1 = stablehlo.multiply %l, %r : tensor<i32>", 1, (True, True)),
        ("ui8", "%1 = stablehlo.subtract %l, %r : tensor<ui8>", 0, (False, False)),
        # 1 - (1 - l)(1 - r), the probability that one of two independent events happens.
        (
            "f16",
            "%c = stablehlo.constant dense<1.0> : tensor<f16>\n %2 = stablehlo.subtract %c, %l : tensor<f16>\n"
            "%3 = stablehlo.subtract %c, %r : tensor<f16>\n %4 = stablehlo.multiply %2, %3 : tensor<f16>\n"
            "%1 = stablehlo.subtract %c, %4 : tensor<f16>",
            0.0,
            (True, True),
        ),
        # Types and ops that are not computed.
        ("i1", "%1 = stablehlo.xor %l, %r : tensor<i1>", 0, (False, False)),
        ("f32", "%1 = stablehlo.atan2 %l, %r : tensor<f32>", 0.0, (False, False)),
    ],
)
def test_bodies_computed_on_numbers(element: str, body: str, number: float, expected: tuple[bool, bool]) -> None:
    text = {"i1": "false"}.get(element, number)
    constant, *_, reduce, _ = ops(f"""(%a: tensor<4x{element}>) {{
        %z = stablehlo.constant dense<{text}> : tensor<{element}>
        %0 = "stablehlo.reduce"(%a, %z) <{{dimensions = array<i64: 0>}}> ({{
        ^bb0(%l: tensor<{element}>, %r: tensor<{element}>):
          {body}
          stablehlo.return %1 : tensor<{element}>
        }}) : (tensor<4x{element}>, tensor<{element}>) -> tensor<{element}>
        return
    }}""")
    assert (is_associative(reduce), is_identity(reduce, constant.results[0])) == expected
