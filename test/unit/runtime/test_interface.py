# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the functions that can be run, the number of their ranks, and the part of a tensor on each rank."""

from __future__ import annotations

from typing import Any

import pytest

import mlir_shard
from mlir_shard.runtime import interface
from mlir_shard.runtime.compile import Pipelines, compile_module
from mlir_shard.runtime.error import RunError
from mlir_shard.sharding.layout import Box


def parse(text: str) -> Any:
    return mlir_shard.parse(text, mlir_shard.create_context())


def test_a_rank_holds_the_block_of_the_device_of_its_number() -> None:
    module = parse("""
      sdy.mesh @mesh = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>
      func.func @main(%a: tensor<6x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) -> tensor<6x5xf32> {
        return %a : tensor<6x5xf32>
      }""")
    (argument,), (result,) = interface.ports(interface.entry_function(module, "main"), 4)
    assert str(argument.local) == "tensor<3x3xf32>"
    boxes = [(box.start, box.size) for box in argument.boxes]
    assert boxes == [((3, 3), (3, 2)), ((0, 3), (3, 2)), ((3, 0), (3, 3)), ((0, 0), (3, 3))]
    assert result.sharding == ""
    assert [box.size for box in result.boxes] == [(6, 5)] * 4


@pytest.mark.parametrize(
    ("mesh", "argument", "complaint"),
    [
        (
            "",
            "tensor<?xf32>",
            r"argument 0 has type tensor<\?xf32>: expected a tensor of static shape, a scalar or a token",
        ),
        ("", "i3", "argument 0 has type i3, which has no counterpart in NumPy"),
        (
            "",
            "tensor<4xf6E3M2FN>",
            "argument 0 has type tensor<4xf6E3M2FN>, whose elements have no counterpart in NumPy",
        ),
        ("", "tensor<4xi3>", "argument 0 has type tensor<4xi3>, whose elements have no counterpart in NumPy"),
        (
            'sdy.mesh @mesh = <["x"=2]>',
            'tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>}',
            'argument 0 is unreduced along "x"',
        ),
    ],
)
def test_arguments_that_cannot_be_passed(mesh: str, argument: str, complaint: str) -> None:
    module = parse(f"{mesh}\nfunc.func @main(%a: {argument}) {{\n  return\n}}")
    with pytest.raises(RunError, match=complaint):
        interface.ports(interface.entry_function(module, "main"), 2)


def test_the_function_to_run() -> None:
    module = parse("""
      func.func private @inner() { return }
      func.func @step() { return }
      func.func private @declared()""")
    assert interface.name_of(interface.entry_function(module, "main")) == "step"
    assert interface.name_of(interface.entry_function(module, "inner")) == "inner"
    for name in ("other", "declared"):
        with pytest.raises(RunError, match=f"no function @{name} to run; its functions: @inner, @step"):
            interface.entry_function(module, name)
    with pytest.raises(RunError, match="no function @main to run; its functions: none with a body"):
        interface.entry_function(parse(""), "main")


def test_the_number_of_ranks() -> None:
    module = parse('sdy.mesh @mesh = <["x"=2, "y"=3]>\nsdy.mesh @one = <[], device_ids=[0]>')
    assert interface.check_ranks(module, None) == 6
    assert interface.check_ranks(module, 6) == 6
    with pytest.raises(RunError, match=r'for 6 ranks, not 4: its mesh is @mesh of 6 \(<\["x"=2, "y"=3\]>\)'):
        interface.check_ranks(module, 4)
    assert interface.check_ranks(parse(""), None) == 1
    assert interface.check_ranks(parse(""), 3) == 3
    written_out = parse("""
      func.func @main(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2]>, [{"x"}]>}) -> tensor<6xf32> {
        return %a : tensor<6xf32>
      }""")
    assert interface.check_ranks(written_out, None) == 2
    with pytest.raises(RunError, match=r'for 2 ranks, not 3: its mesh is mesh<\["x"=2\]> of 2'):
        interface.check_ranks(written_out, 3)
    differing = parse('sdy.mesh @a = <["x"=2]>\nsdy.mesh @b = <["x"=3]>')
    assert interface.check_ranks(differing, None) == 3
    apart = parse(
        'sdy.mesh @a = <["x"=2]>\nsdy.mesh @b = <["x"=3], device_ids=[4, 2, 3]>\nsdy.mesh @c = <[], device_ids=[9]>'
    )
    assert interface.check_ranks(apart, None) == 5
    with pytest.raises(RunError, match=r"for 5 ranks, not 3: its meshes are @a of 2 .*, @b of 3 "):
        interface.check_ranks(apart, 3)


def test_a_rank_that_is_not_in_the_mesh_has_no_box() -> None:
    module = parse("""
      sdy.mesh @a = <["x"=2]>
      sdy.mesh @b = <["x"=2], device_ids=[3, 2]>
      func.func @main(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@b, [{"x"}]>}) -> tensor<6xf32> {
        return %a : tensor<6xf32>
      }""")
    (argument,), (result,) = interface.ports(interface.entry_function(module, "main"), 4)
    assert argument.boxes == (None, None, Box((3,), (3,)), Box((0,), (3,)))
    assert argument.local.shape == (3,) and result.boxes == (Box((0,), (6,)),) * 4


@pytest.mark.parametrize("ranks", [0, -1])
def test_no_ranks_are_too_few(ranks: int) -> None:
    with pytest.raises(RunError, match=f"the number of ranks is {ranks}, but must be 1 or more"):
        interface.check_ranks(parse(""), ranks)


def test_a_program_that_was_not_made_local_is_refused() -> None:
    module = parse("""
      sdy.mesh @mesh = <["x"=2]>
      func.func @main(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) { return }""")
    complaint = r"the local function has types \(tensor<6xf32>\), but its shardings require \(tensor<3xf32>\)"
    with pytest.raises(RunError, match=complaint):
        compile_module(module, pipelines=Pipelines("canonicalize", "canonicalize"))


def test_the_module_is_left_as_it_is() -> None:
    module = parse("""
      sdy.mesh @mesh = <["x"=2]>
      func.func @main(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<6xf32> {
        %0 = stablehlo.add %a, %a : tensor<6xf32>
        return %0 : tensor<6xf32>
      }""")
    before = str(module)
    compiled = compile_module(module)
    assert str(module) == before
    assert compiled.sharded.ranks == 2
    assert compiled.unsharded is not None
    assert compiled.unsharded.ranks == 1
