# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the rules of upstream's dialects that depend on shapes, maps or attributes."""

from __future__ import annotations

import re

import pytest
from rules.modules import rule_of

from mlir_shard.rules import reason_without_rule


def of(signature: str, op: str, *, conservative: bool = False) -> str:
    """Returns the rule of one op in a function with these arguments, without the sizes of factors."""
    return re.sub(r" \{.*?\}", "", rule_of(signature, f"%0 = {op}", conservative=conservative))


def generic(maps: list[str], types: list[str], shapes: list[str]) -> str:
    """Returns the rule of a generic op with one or two inputs and one output of these shapes."""
    *inputs, _ = tensors = [f"tensor<{shape}xf32>" for shape in shapes]
    names = [f"%{number}" for number in range(len(tensors))]
    signature = ", ".join(f"%a{name[1:]}: {type_}" for name, type_ in zip(names, tensors, strict=True))
    arguments = ", ".join(f"%x{number}: f32" for number in range(len(tensors)))
    values = ", ".join(f"%a{number}" for number in range(len(inputs)))
    return of(
        signature,
        f"""linalg.generic {{
            indexing_maps = [{", ".join(f"affine_map<{map_}>" for map_ in maps)}],
            iterator_types = [{", ".join(f'"{type_}"' for type_ in types)}]
          }} ins({values} : {", ".join(inputs)}) outs(%a{len(inputs)} : {tensors[-1]}) {{
          ^bb0({arguments}):
            %s = arith.addf %x0, %x{len(inputs)} : f32
            linalg.yield %s : f32
          }} -> {tensors[-1]}""",
    )


@pytest.mark.parametrize(
    ("maps", "types", "shapes", "expected"),
    [
        # A diagonal cannot be split into shards.
        (["(i) -> (i, i)", "(i) -> (i)"], ["parallel"], ["4x4", "4"], "([i, j], [i])->([i]) need_replication=i,j"),
        # A window of one element needs no permutation factor.
        (
            ["(i, j) -> (i + j)", "(i, j) -> (j)", "(i, j) -> (i)"],
            ["parallel", "reduction"],
            ["4", "1", "4"],
            "([i], [j], [i])->([i]) need_replication=j",
        ),
        (
            ["(i, j) -> (i * 2 + j * 3)", "(i, j) -> (j)", "(i, j) -> (i)"],
            ["parallel", "reduction"],
            ["10", "2", "4"],
            "([i], [j], [i])->([i]) need_replication=j permutation=i",
        ),
        # Expressions that do not describe a window.
        (
            ["(i) -> (i floordiv 2)", "(i) -> (i)"],
            ["parallel"],
            ["2", "4"],
            "([j], [i])->([i]) need_replication=i,j",
        ),
        (
            ["(i, j) -> (i + j)", "(i, j) -> (i, j)"],
            ["parallel", "parallel"],
            ["7", "4x4"],
            "([k], [i, j])->([i, j]) need_replication=i,j,k",
        ),
        # A loop that overwrites the result is not a reduction.
        (
            ["(i, j) -> (i, j)", "(i, j) -> (i)"],
            ["parallel", "parallel"],
            ["4x8", "4"],
            "([i, j], [i])->([i]) need_replication=j",
        ),
        (["(i) -> (0, i)", "(i) -> (i)"], ["parallel"], ["1x4", "4"], "([j, i], [i])->([i]) need_replication=j"),
    ],
)
def test_indexing_maps(maps: list[str], types: list[str], shapes: list[str], expected: str) -> None:
    assert generic(maps, types, shapes) == expected


@pytest.mark.parametrize(
    ("signature", "op", "expected"),
    [
        # Dimensions of size 1 are not factors of merged dimensions.
        (
            "%a: tensor<8xf32>",
            "tensor.expand_shape %a [[0, 1, 2]] output_shape [1, 8, 1] : tensor<8xf32> into tensor<1x8x1xf32>",
            "([j])->([i, j, k])",
        ),
        ("%a: tensor<1x1xf32>", "tensor.collapse_shape %a [] : tensor<1x1xf32> into tensor<f32>", "([i, j])->([])"),
        (
            "%a: tensor<8x6xf32>, %b: tensor<1x6x8xf32>",
            "linalg.pack %a inner_dims_pos = [0] inner_tiles = [8] into %b : tensor<8x6xf32> -> tensor<1x6x8xf32>",
            "([j, k], [i, k, j])->([i, k, j])",
        ),
        # Tiles that do not fill the dimension.
        (
            "%a: tensor<6x10xf32>, %b: tensor<3x6x4xf32>, %p: f32",
            "linalg.pack %a padding_value(%p : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [4] "
            "into %b : tensor<6x10xf32> -> tensor<3x6x4xf32>",
            "([i, j], [j, i, k], [])->([j, i, k]) need_replication=k permutation=j",
        ),
        (
            "%a: tensor<3x6x4xf32>, %b: tensor<10x6xf32>",
            "linalg.unpack %a inner_dims_pos = [0] inner_tiles = [4] into %b : tensor<3x6x4xf32> -> tensor<10x6xf32>",
            "([i, k, j], [i, k])->([i, k]) need_replication=j permutation=i",
        ),
        # A slice with a dynamic offset.
        (
            "%a: tensor<4x8xf32>, %i: index",
            "tensor.extract_slice %a[0, %i] [4, 2] [1, 1] : tensor<4x8xf32> to tensor<4x2xf32>",
            "([i, j], [])->([i, j]) need_replication=j blocked_propagation=j",
        ),
        (
            "%a: tensor<4x2xf32>, %b: tensor<4x8xf32>, %i: index",
            "tensor.insert_slice %a into %b[0, %i] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x8xf32>",
            "([i, k], [i, j], [])->([i, j]) need_replication=k",
        ),
        (
            "%a: tensor<4x8x6xf32>, %b: tensor<3x2xindex>",
            "tensor.gather %a[%b] gather_dims([0, 2]) : (tensor<4x8x6xf32>, tensor<3x2xindex>) -> tensor<3x8xf32>",
            "([j, k, l], [i, m])->([i, k]) need_replication=j,l,m",
        ),
        (
            "%a: tensor<4x8xf32>, %b: tensor<4x8xf32>",
            "bufferization.materialize_in_destination %a in %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>",
            "([i, j], [i, j])->([i, j])",
        ),
        (
            "%a: tensor<4xf32>",
            "bufferization.alloc_tensor() copy(%a) : tensor<4xf32>",
            "([i])->([i])",
        ),
        ("", "bufferization.alloc_tensor() : tensor<4xf32>", "None"),
        ("%a: memref<4xf32>", "bufferization.to_tensor %a : memref<4xf32> to tensor<4xf32>", "None"),
        ("%a: tensor<4xf32>", "shape.shape_of %a : tensor<4xf32> -> tensor<1xindex>", "None"),
        ("%a: complex<f32>", "complex.neg %a : complex<f32>", "None"),
        # A bias of one element; windows of one element.
        (
            "%a: tensor<2x8x4x4xf32>, %w: tensor<6x1x3x4xf32>, %b: tensor<1xf32>, %z: tensor<1xf32>",
            "tosa.conv2d %a, %w, %b, %z, %z {acc_type = f32, pad = array<i64: 0, 0, 0, 0>, "
            "stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>} : (tensor<2x8x4x4xf32>, tensor<6x1x3x4xf32>, "
            "tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x8x2x6xf32>",
            "([i, j, l, o], [n, k, m, o], [p], [q], [r])->([i, j, l, n]) "
            "reduction=o need_replication=k,m permutation=l",
        ),
        (
            "%a: tensor<2x8x4x1xf32>, %w: tensor<1x1x1x2xf32>, %b: tensor<2xf32>, %z: tensor<1xf32>",
            "tosa.depthwise_conv2d %a, %w, %b, %z, %z {acc_type = f32, pad = array<i64: 0, 0, 0, 0>, "
            "stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>} : (tensor<2x8x4x1xf32>, tensor<1x1x1x2xf32>, "
            "tensor<2xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x8x4x2xf32>",
            "([i, j, l, n], [k, m, n, o], [o], [p], [q])->([i, j, l, o]) need_replication=k,m",
        ),
        (
            "%a: tensor<2x4x32xf8E4M3FN>, %s: tensor<2x4x1xf8E8M0FNU>",
            "tosa.cast_from_block_scaled %a, %s {block_size = #tosa.block_size<BLOCK_SIZE_32>} : "
            "(tensor<2x4x32xf8E4M3FN>, tensor<2x4x1xf8E8M0FNU>) -> tensor<2x4x32xf32>",
            "([i, j, l], [i, j, k])->([i, j, l]) need_replication=l",
        ),
        (
            "%a: tensor<1x4x8xf32>",
            "tosa.reduce_sum %a {axis = 0 : i32} : (tensor<1x4x8xf32>) -> tensor<1x4x8xf32>",
            "([i, j, k])->([l, j, k]) reduction=i",
        ),
    ],
)
def test_rules(signature: str, op: str, expected: str) -> None:
    assert of(signature, op) == expected


def test_conservative_rules_do_not_go_along_what_moves() -> None:
    pad = """tensor.pad %a low[0, 2] high[0, 2] {
        ^bb0(%i: index, %j: index):
          tensor.yield %b : f32
        } : tensor<4x8xf32> to tensor<4x12xf32>"""
    signature = "%a: tensor<4x8xf32>, %b: f32"
    assert of(signature, pad) == "([i, j])->([i, j]) permutation=j"
    assert of(signature, pad, conservative=True) == "([i, j])->([i, j]) permutation=j blocked_propagation=j"
    concat = "tensor.concat dim(1) %a, %a : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>"
    assert of(signature, concat) == "([i, j], [i, j])->([i, j]) need_replication=j"
    assert of(signature, concat, conservative=True) == "([i, j], [i, k])->([i, l])"


def test_reasons() -> None:
    assert reason_without_rule("arith.constant") == "it has no operands: its users determine its sharding"
    assert reason_without_rule("shape.broadcast") == reason_without_rule("shape.any") is not None
    assert reason_without_rule("linalg.matmul") is None
