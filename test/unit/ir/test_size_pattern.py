# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of signatures that contain sizes in part only, and of the rules that declare to depend on no more of them."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mlir_shard
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.editing import ops_below
from mlir_shard.rules import RuleCache
from mlir_shard.rules.registry import has_rule_for_any_sizes, rule_for
from mlir_shard.sharding.propagation import order_of, propagation_key

# Ops with letters for the sizes of dimensions: operand types, the op, its attributes, the type of the result.
OPS = {
    "stablehlo.add": (("ab", "ab"), "", "ab"),
    "stablehlo.select": (("", "abc", "abc"), "", "abc"),
    "stablehlo.transpose": (("abc",), "permutation = array<i64: 2, 0, 1>", "cab"),
    "stablehlo.broadcast_in_dim": (("ac",), "broadcast_dimensions = array<i64: 0, 2>", "abd"),
    "stablehlo.reverse": (("ab",), "dimensions = array<i64: 1>", "ab"),
    "stablehlo.dot_general": (
        ("abc", "acd"),
        "dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
        "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>",
        "abd",
    ),
    "stablehlo.dot": (("ab", "bc"), "", "ac"),
    "tosa.transpose": (("abc",), "perms = array<i32: 1, 2, 0>", "bca"),
    "arith.addf": (("ab", "ab"), "", "ab"),
    "math.exp": (("abc",), "", "abc"),
}
Sizes = dict[str, int]


@pytest.fixture(scope="module")
def context() -> Any:
    return mlir_shard.create_context()


def _type(letters: str, sizes: Sizes) -> str:
    element = "i1" if not letters else "f32"
    return f"tensor<{''.join(f'{sizes[letter]}x' for letter in letters)}{element}>"


def _op(name: str, number: int, sizes: Sizes) -> str:
    operands, attributes, result = OPS[name]
    given = ", ".join(f"%a{number}_{index}" for index in range(len(operands)))
    types = ", ".join(_type(operand, sizes) for operand in operands)
    return f'"{name}"({given}) {{{attributes}}} : ({types}) -> {_type(result, sizes)}'


def _module(name: str, all_sizes: list[Sizes]) -> str:
    arguments = ", ".join(
        f"%a{number}_{index}: {_type(operand, sizes)}"
        for number, sizes in enumerate(all_sizes)
        for index, operand in enumerate(OPS[name][0])
    )
    body = "\n".join(f"  %{number} = {_op(name, number, sizes)}" for number, sizes in enumerate(all_sizes))
    return f"func.func @main({arguments}) {{\n{body}\n  return\n}}"


def _shapes(name: str, sizes: Sizes) -> list[tuple[int, ...]]:
    operands, _, result = OPS[name]
    return [tuple(sizes[letter] for letter in letters) for letters in (*operands, result)]


def _pattern(shapes: list[tuple[int, ...]]) -> object:
    """Returns the part of the sizes of an op that its signature contains."""
    numbers: dict[int, int] = {1: 0}
    equal = [tuple(numbers.setdefault(size, len(numbers)) for size in shape) for shape in shapes]
    return equal, order_of(map(prod, shapes))


sizes_of_letters = st.fixed_dictionaries({letter: st.sampled_from([1, 2, 3, 4, 6, 8, 12]) for letter in "abcd"})


@settings(max_examples=300)
@given(name=st.sampled_from(sorted(OPS)), first=sizes_of_letters, second=sizes_of_letters)
def test_operations_with_sizes_of_one_pattern_have_one_signature_and_rules_alike(
    context: Any, name: str, first: Sizes, second: Sizes
) -> None:
    if name == "stablehlo.broadcast_in_dim":
        assume(all(sizes["c"] in (1, sizes["d"]) for sizes in (first, second)))
    module = mlir_shard.parse(_module(name, [first, second]), context)
    arrays = ModuleArrays(module.operation, (), has_rule_for_any_sizes)
    one, other = (number for number in range(len(arrays)) if arrays.operation(number).name == name)
    is_one = arrays.signatures[one] == arrays.signatures[other]
    assert is_one == (_pattern(_shapes(name, first)) == _pattern(_shapes(name, second)))
    if is_one:
        rules = [rule_for(arrays.operation(number)) for number in (one, other)]
        assert propagation_key(rules[0]) == propagation_key(rules[1])


@settings(max_examples=300)
@given(name=st.sampled_from(sorted(OPS)), first=sizes_of_letters, second=sizes_of_letters)
def test_a_cache_gives_the_rules_of_all_sizes(context: Any, name: str, first: Sizes, second: Sizes) -> None:
    if name == "stablehlo.broadcast_in_dim":
        assume(all(sizes["c"] in (1, sizes["d"]) for sizes in (first, second)))
    module = mlir_shard.parse(_module(name, [first, second]), context)
    ops, cache = [op for op in ops_below(module) if op.name == name], RuleCache()
    assert list(map(cache.rule_for, ops)) == list(map(rule_for, ops))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("stablehlo.negate %a : tensor<8x4xf32>", "stablehlo.negate %b : tensor<?x4xf32>"),
        ("stablehlo.negate %a : tensor<8x4xf32>", "stablehlo.negate %b : tensor<8x4xf64>"),
        ("stablehlo.negate %a : tensor<8x4xf32>", "stablehlo.negate %b : tensor<8x4x2xf32>"),
        ("stablehlo.negate %a : tensor<8x4xf32>", "stablehlo.abs %b : tensor<16x4xf32>"),
        (
            "stablehlo.reshape %a : (tensor<8x4xf32>) -> tensor<32xf32>",
            "stablehlo.reshape %b : (tensor<6x4xf32>) -> tensor<24xf32>",
        ),
        (
            "stablehlo.reverse %a, dims = [0] : tensor<8x4xf32>",
            "stablehlo.reverse %b, dims = [1] : tensor<8x4xf32>",
        ),
        # The numbers of elements exceed 64 bits, so their order is unknown.
        (
            "stablehlo.negate %a : tensor<4294967296x4294967296xf32>",
            "stablehlo.negate %b : tensor<4294967296x8589934592xf32>",
        ),
    ],
)
def test_what_else_tells_operations_apart(first: str, second: str) -> None:
    types = [text.split(" : ")[1].split(" -> ")[0].strip("()") for text in (first, second)]
    text = f"func.func @main(%a: {types[0]}, %b: {types[1]}) {{\n  %0 = {first}\n  %1 = {second}\n  return\n}}"
    module = mlir_shard.parse(text, mlir_shard.create_context())
    arrays = ModuleArrays(module.operation, (), has_rule_for_any_sizes)
    numbers = [arrays.signatures[op] for op in range(len(arrays)) if arrays.operation(op).name.startswith("stablehlo.")]
    assert len(numbers) == 2
    assert numbers[0] != numbers[1]


def test_rules_of_names_with_specific_ones_are_not_for_any_sizes() -> None:
    assert has_rule_for_any_sizes("stablehlo.add")
    assert not has_rule_for_any_sizes("stablehlo.custom_call")
    assert not has_rule_for_any_sizes("stablehlo.concatenate")
    assert not has_rule_for_any_sizes("nobody.knows")
