# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of `cse` against the host's pass of that name."""

from __future__ import annotations

import random
from typing import Any

import pytest

import mlir_shard
from mlir_shard.host import ir
from mlir_shard.ir.operation_list import capsules_of
from mlir_shard.passes import host_passes
from mlir_shard.passes.registry import Changes
from mlir_shard.transforms.canonicalize.cse import CSE

NAMES = ("add", "subtract", "maximum")


def random_program(choose: random.Random, most: int = 7) -> str:
    """Returns two functions of few distinct sums, differences and maxima, some of them in regions, some unused."""

    def ops(count: int, prefix: str, values: list[str], indent: str) -> list[str]:
        lines = []
        for number in range(count):
            name = f"%{prefix}{number}"
            if indent == "  " and choose.random() < 0.2:
                inner = ops(2, f"{prefix}{number}_", list(values), "    ")
                lines += [
                    f'  {name} = "stablehlo.case"(%i) ({{',
                    *inner,
                    f"    stablehlo.return {inner[-1].split()[0]} : tensor<4xf32>",
                    "  }) : (tensor<i32>) -> tensor<4xf32>",
                ]
            else:
                # Few of the newest values are equal.
                one, other = (choose.choice(values[-choose.choice((2, 8)) :]) for _ in range(2))
                lines.append(f"{indent}{name} = stablehlo.{choose.choice(NAMES)} {one}, {other} : tensor<4xf32>")
            values.append(name)
        return lines

    functions = []
    for function in range(2):
        values = ["%a", "%b"]
        body = ops(choose.randrange(1, most), "v", values, "  ")
        returned = values[2:] if choose.random() < 0.7 else values[-1:]
        types = ", ".join(["tensor<4xf32>"] * len(returned))
        functions.append(
            f"func.func @f{function}(%a: tensor<4xf32>, %b: tensor<4xf32>, %i: tensor<i32>) -> ({types}) {{\n"
            + "\n".join(body)
            + f"\n  return {', '.join(returned)} : {types}\n}}"
        )
    return "\n".join(functions)


def by_host(text: str, context: Any) -> str:
    module = mlir_shard.parse(text, context)
    host_passes.run("builtin.module(cse)", module.operation, verify_each=False)
    return mlir_shard.print_module(module)


def test_random_programs_become_what_the_host_makes_of_them() -> None:
    context, left = mlir_shard.create_context(), 0
    for seed in range(150):
        text = random_program(random.Random(seed))
        module = mlir_shard.parse(text, context)
        before = mlir_shard.print_module(module)
        with context:
            is_left = CSE().run(module.operation) is False
        after = mlir_shard.print_module(module)
        assert after == by_host(text, context), text
        assert not is_left or after == before
        left += is_left
    assert 15 < left < 135


def test_large_programs_become_what_the_host_makes_of_them() -> None:
    context, text = mlir_shard.create_context(), random_program(random.Random(0), most=20_000)
    module = mlir_shard.parse(text, context)
    mlir_shard.run(module, "builtin.module(cse)")
    assert text.count(" = ") > 10_000
    assert mlir_shard.print_module(module) == by_host(text, context)


@pytest.mark.parametrize(
    "body",
    [
        "%0 = sdy.propagation_barrier %a allowed_direction=NONE : tensor<4xf32>",
        "%0 = sdy.constant dense<1.0> : tensor<4xf32>",
        "sdy.sharding_group %a group_id=0 : tensor<4xf32>",
        "%0 = func.call @g(%a) : (tensor<4xf32>) -> tensor<4xf32>",
        "%0 = stablehlo.custom_call @g(%a) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>",
        "%0 = stablehlo.custom_call @g(%a) : (tensor<4xf32>) -> tensor<4xf32>",
    ],
)
def test_what_is_unused_goes_where_the_host_erases_it(body: str) -> None:
    context = mlir_shard.create_context()
    text = (
        f"func.func private @g(tensor<4xf32>) -> tensor<4xf32>\nfunc.func @f(%a: tensor<4xf32>) {{\n{body}\nreturn\n}}"
    )
    module = mlir_shard.parse(text, context)
    mlir_shard.run(module, "builtin.module(cse)")
    assert mlir_shard.print_module(module) == by_host(text, context)


@pytest.mark.parametrize(
    "body",
    [
        # The operands of a sum commute, inside regions too; those of a difference do not.
        """
        %0 = stablehlo.constant dense<0.0> : tensor<f32>
        %1 = stablehlo.reduce(%a init: %0) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
          reducer(%x: tensor<f32>, %y: tensor<f32>) {
          %s = stablehlo.add %x, %y : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }
        %2 = stablehlo.reduce(%a init: %0) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
          reducer(%x: tensor<f32>, %y: tensor<f32>) {
          %s = stablehlo.add %y, %x : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }
        %3 = stablehlo.reduce(%a init: %0) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
          reducer(%x: tensor<f32>, %y: tensor<f32>) {
          %s = stablehlo.subtract %x, %y : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }
        %4 = stablehlo.reduce(%a init: %0) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
          reducer(%x: tensor<f32>, %y: tensor<f32>) {
          %s = stablehlo.subtract %y, %x : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }
        %5 = func.call @use4(%1, %2, %3, %4) : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
        """,
        # Regions that capture different values are different.
        """
        %i = stablehlo.constant dense<1> : tensor<i32>
        %0 = "stablehlo.case"(%i) ({
          %n = stablehlo.negate %a : tensor<4xf32>
          stablehlo.return %n : tensor<4xf32>
        }) : (tensor<i32>) -> tensor<4xf32>
        %1 = "stablehlo.case"(%i) ({
          %n = stablehlo.negate %0 : tensor<4xf32>
          stablehlo.return %n : tensor<4xf32>
        }) : (tensor<i32>) -> tensor<4xf32>
        %2 = "stablehlo.case"(%i) ({
          %n = stablehlo.negate %a : tensor<4xf32>
          stablehlo.return %n : tensor<4xf32>
        }) : (tensor<i32>) -> tensor<4xf32>
        %5 = func.call @use(%0, %1, %2) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        """,
        # Custom calls on tensors may have memory effects.
        """
        %0 = stablehlo.custom_call @g(%a) : (tensor<4xf32>) -> tensor<4xf32>
        %1 = stablehlo.custom_call @g(%a) : (tensor<4xf32>) -> tensor<4xf32>
        %2 = stablehlo.custom_call @g(%a) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
        %3 = stablehlo.custom_call @g(%a) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
        %4 = func.call @use(%0, %1, %2) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        %5 = func.call @use(%0, %1, %3) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        """,
        # An operation of linalg on memrefs writes memory, and one on tensors does not.
        """
        %0 = linalg.add ins(%a, %a : tensor<4xf32>, tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
        %1 = linalg.add ins(%a, %a : tensor<4xf32>, tensor<4xf32>) outs(%a : tensor<4xf32>) -> tensor<4xf32>
        linalg.add ins(%m, %m : memref<4xf32>, memref<4xf32>) outs(%m : memref<4xf32>)
        linalg.add ins(%m, %m : memref<4xf32>, memref<4xf32>) outs(%m : memref<4xf32>)
        %5 = func.call @use(%0, %1, %1) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        """,
        # Loads are equal up to the next store.
        """
        %0 = arith.constant 0 : index
        %1 = memref.load %m[%0] : memref<4xf32>
        %2 = memref.load %m[%0] : memref<4xf32>
        %3 = arith.addf %1, %2 : f32
        memref.store %3, %m[%0] : memref<4xf32>
        %4 = memref.load %m[%0] : memref<4xf32>
        memref.store %4, %m[%0] : memref<4xf32>
        %6 = memref.alloc() : memref<4xf32>
        %7 = memref.alloc() : memref<4xf32>
        memref.copy %7, %m : memref<4xf32> to memref<4xf32>
        """,
        # An operation is replaced by an equal one in a block that dominates its own.
        """
        %0 = stablehlo.negate %a : tensor<4xf32>
        cf.br ^next
      ^next:
        %1 = stablehlo.negate %a : tensor<4xf32>
        %5 = func.call @use(%0, %1, %1) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        """,
        # Collectives between processes have no effects on memory.
        """
        %0 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
        %1 = shard.all_reduce %a on @grid grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
        %i = shard.process_multi_index on @grid axes = [0] : index
        %j = shard.process_multi_index on @grid axes = [0] : index
        %s = tensor.extract_slice %0[%i] [2] [1] : tensor<4xf32> to tensor<2xf32>
        %t = tensor.extract_slice %1[%j] [2] [1] : tensor<4xf32> to tensor<2xf32>
        %c = tensor.concat dim(0) %s, %t : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
        %5 = func.call @use(%0, %1, %c) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        """,
    ],
    ids=["commutative", "captures", "custom calls", "linalg", "loads", "blocks", "collectives"],
)
def test_effects_are_those_of_the_host(body: str) -> None:
    context = mlir_shard.create_context()
    text = f"""
      shard.grid @grid(shape = 2)
      func.func private @use(tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      func.func private @use4(tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
      func.func @f(%a: tensor<4xf32>, %m: memref<4xf32>) {{ {body} return }}
    """
    module = mlir_shard.parse(text, context)
    mlir_shard.run(module, "builtin.module(cse)")
    assert mlir_shard.print_module(module) == by_host(text, context)


@pytest.mark.parametrize(
    "unused", ["%d = stablehlo.tanh %b : tensor<4xf32>", "%d = stablehlo.abs %a : tensor<4xf32>", ""]
)
def test_regions_are_compared_without_what_was_erased_from_them(unused: str) -> None:
    context = mlir_shard.create_context()
    text = f"""func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>, %i: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>) {{
      %0 = "stablehlo.case"(%i) ({{
        %d = stablehlo.negate %b : tensor<4xf32>
        %n = stablehlo.abs %a : tensor<4xf32>
        stablehlo.return %n : tensor<4xf32>
      }}) : (tensor<i32>) -> tensor<4xf32>
      %1 = "stablehlo.case"(%i) ({{
        {unused}
        %n = stablehlo.abs %a : tensor<4xf32>
        stablehlo.return %n : tensor<4xf32>
      }}) : (tensor<i32>) -> tensor<4xf32>
      return %0, %1 : tensor<4xf32>, tensor<4xf32>
    }}"""
    module = mlir_shard.parse(text, context)
    mlir_shard.run(module, "builtin.module(cse)")
    assert mlir_shard.print_module(module).count("stablehlo.case") == 1
    assert mlir_shard.print_module(module) == by_host(text, context)


def test_what_has_replaced_others_may_be_erased_with_the_region_around_it() -> None:
    context = mlir_shard.create_context()
    case = """ = "stablehlo.case"(%i) ({
        %n = stablehlo.negate %a : tensor<4xf32>
        %m = stablehlo.negate %a : tensor<4xf32>
        %s = stablehlo.subtract %n, %m : tensor<4xf32>
        stablehlo.return %s : tensor<4xf32>
      }) : (tensor<i32>) -> tensor<4xf32>
    """
    text = f"""func.func @f(%a: tensor<4xf32>, %i: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>) {{
      %0{case} %1{case} %2{case}
      return %0, %1 : tensor<4xf32>, tensor<4xf32>
    }}"""
    module = mlir_shard.parse(text, context)
    with context:
        changed = CSE().run(module.operation)
    assert isinstance(changed, Changes)
    assert sorted(op.name for op in map(ir.Operation._CAPICreate, capsules_of(changed.moved))) == [
        "stablehlo.case",
        "stablehlo.negate",
    ]
    assert mlir_shard.print_module(module) == by_host(text, context)


def test_an_unknown_location_becomes_that_of_what_is_replaced() -> None:
    context = mlir_shard.create_context()
    text = """func.func @f(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
      %0 = stablehlo.negate %a : tensor<4xf32> loc(unknown)
      %1 = stablehlo.negate %a : tensor<4xf32> loc("second")
      %2 = stablehlo.negate %a : tensor<4xf32> loc("third")
      return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    }"""
    module = mlir_shard.parse(text, context)
    mlir_shard.run(module, "builtin.module(cse)")
    (only,) = (op for op in module.body.operations[0].regions[0].blocks[0].operations if op.name == "stablehlo.negate")
    assert "second" in str(only.location)


def test_grids_and_meshes_stay() -> None:
    context = mlir_shard.create_context()
    text = 'shard.grid @grid(shape = 2)\nsdy.mesh @mesh = <["x"=2]>\nfunc.func @f() {\nreturn\n}'
    module = mlir_shard.parse(text, context)
    with context:
        assert CSE().run(module.operation) is False
    assert mlir_shard.print_module(module) == by_host(text, context)
