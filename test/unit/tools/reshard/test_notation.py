# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the notation of meshes, tensors and shardings on the command line."""

from __future__ import annotations

import pytest

from mlir_shard.sharding import AxisRef, Mesh, ReductionOp
from mlir_shard.tools.reshard.notation import read_mesh, read_sharding, read_tensor

MESH = Mesh([("x", 2), ("y", 4), ("z", 2)])


@pytest.mark.parametrize("text", ['<["x"=2, "y"=3]>', "x=2,y=3", ' "x" = 2 , y=3 '])
def test_meshes(text: str) -> None:
    assert read_mesh(text) == Mesh([("x", 2), ("y", 3)])


def test_a_mesh_without_names_has_those_of_an_upstream_grid() -> None:
    assert read_mesh("2x3") == Mesh([("axis_0", 2), ("axis_1", 3)])
    assert read_mesh("4") == Mesh([("axis_0", 4)])


def test_device_ids() -> None:
    assert read_mesh('<["x"=2], device_ids=[1, 0]>').devices == (1, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a mesh such as x=2,y=3"),
        ("x=-1", "'x=-1' is not a mesh"),
        ("x=2,,y=3", "is not a mesh"),
        ("x=0", 'mesh axis "x" has size 0, but an axis must have at least size 1'),
        ("2x0", 'mesh axis "axis_1" has size 0'),
        ("x=2,x=3", 'mesh axis "x" is given 2 times'),
        ('<["x"=2', "expected ']', found the end of the text"),
        ("<[]>", "has no axes"),
        ("x=65537", "has 65537 devices, too many to plan for: at most 65536"),
        ("x=1000,y=1000,z=1000000000000", "too many to plan for"),
    ],
)
def test_no_meshes(text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        read_mesh(text)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "shape", "element_type", "element_size"),
    [
        ("12x18xf32", (12, 18), "f32", 4),
        ("12x18", (12, 18), "f32", 4),
        ("12", (12,), "f32", 4),
        ("f64", (), "f64", 8),
        ("tensor<2 x 3xbf16>", (2, 3), "bf16", 2),
        ("0x3xi1", (0, 3), "i1", 1),
        ("3xi4", (3,), "i4", 1),
        ("3xui16", (3,), "ui16", 2),
        ("3xf8E4M3FN", (3,), "f8E4M3FN", 1),
        ("3xcomplex<f32>", (3,), "complex<f32>", 8),
        ("3xindex", (3,), "index", 8),
        ("3xf80", (3,), "f80", 10),
        ("3xcomplex<i32>", (3,), "complex<i32>", 8),
    ],
)
def test_tensors(text: str, shape: tuple[int, ...], element_type: str, element_size: int) -> None:
    tensor = read_tensor(text)
    assert (tensor.shape, tensor.element_type, tensor.element_size) == (shape, element_type, element_size)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a shape"),
        ("-3xf32", "'-3xf32' is not a shape with an element type, such as 12x18xf32"),
        ("8x", "'8x' is not a shape with an element type, such as 12x18xf32"),
        ("?x3xf32", "'?x3xf32' has a dynamic size: specify the size to plan for"),
        ("3xfoo", "'foo' is not an element type of known size"),
        ("3xf0", "'f0' is not an element type"),
        ("3xf33", "'f33' is not an element type of known size; did you mean 'f32'?"),
        ("3xi99999999", "'i99999999' is not an element type of known size"),
        ("3xcomplex<index>", "'complex<index>' is not an element type of known size"),
        ("3xF32", "'F32' is not an element type of known size"),
        ("99999999999999999999xf32", "is too large to plan for: at most 70368744177664 bytes"),
        ("0x99999999999999999999xf32", "is too large to plan for"),
    ],
)
def test_no_tensors(text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        read_tensor(text)
    assert message in str(raised.value)


def test_shardings_by_names() -> None:
    sharding = read_sharding('[{"x"}, {"y":(1)2}], unreduced=max{"z"}', MESH)
    assert sharding.dim_shardings[1].axes == (AxisRef.sub("y", 1, 2),)
    assert sharding.unreduced_axes == (AxisRef("z"),)
    assert sharding.reduction_op is ReductionOp.MAX
    assert read_sharding('<@mesh, [{"x"}]>', MESH) == read_sharding('[{"x"}]', MESH)


def test_shardings_by_numbers() -> None:
    assert read_sharding("[[2,0],[]]", MESH) == read_sharding('[{"z", "x"}, {}]', MESH)
    assert read_sharding("[]", MESH) == read_sharding("<@mesh, []>", MESH)
    by_numbers = read_sharding(" [ [1] , [] ], unreduced = min [2, 0]", MESH)
    assert by_numbers == read_sharding('[{"y"}, {}], unreduced=min{"x", "z"}', MESH)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[7]]", "refers to axis 7, but the axes of mesh"),
        ("[[0,,1]]", "has a list with a missing number between commas"),
        ("[[0],[1]", "sharding '[[0],[1]': "),
        ("[{x}]", "expected a string for 'name', found `x}]>`"),
        ("nonsense", "expected '<', found `nonsense`"),
    ],
)
def test_no_shardings(text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        read_sharding(text, MESH)
    assert message in str(raised.value)
