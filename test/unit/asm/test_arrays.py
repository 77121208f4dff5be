# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules as flat arrays, against the same read through the bindings."""

from __future__ import annotations

import pytest

from mlir_shard import asm
from mlir_shard.asm.arrays import ModuleArrays
from mlir_shard.dialects import sdy
from mlir_shard.dialects.context import create_context
from mlir_shard.host import ir
from mlir_shard.sharding import TensorSharding, TensorShardingPerValue
from mlir_shard.transforms.walk import ops_below

PROGRAM = """
sdy.mesh @m = <["a"=2]>
func.func @f(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.add %x, %y {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a"}, {}]>]>} : tensor<4x8xf32>
  %1 = stablehlo.add %0, %y : tensor<4x8xf32>
  %2 = stablehlo.add %1, %y {other = 1 : i32} : tensor<4x8xf32>
  %3:2 = sdy.named_computation<"g">(%2, %y) (%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) {
    %4 = stablehlo.multiply %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a"}, {}]>]>} : tensor<4x8xf32>
    sdy.return %4, %a : tensor<4x8xf32>, tensor<4x8xf32>
  } : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return %3#1 : tensor<4x8xf32>
}
"""


@pytest.fixture
def module():
    return asm.parse_module(PROGRAM, create_context())


def test_agrees_with_the_bindings(module) -> None:
    arrays = ModuleArrays(module)
    ops = list(ops_below(module))
    assert len(arrays) == len(ops)
    for index, op in enumerate(ops):
        assert arrays.operation(index) == op
        assert [arrays.value(number) for number in arrays.operands(index)] == list(op.operands)
        assert [arrays.value(number) for number in arrays.results(index)] == list(op.results)
        assert all(arrays.definers[number] == index for number in arrays.results(index))
        parent = arrays.parents[index]
        around = module.operation if parent < 0 else arrays.operation(parent)
        assert around == op.parent.operation


def test_replaced_operations_keep_their_numbers_and_locations(module) -> None:
    arrays = ModuleArrays(module)
    additions = [number for number in range(len(arrays)) if arrays.operation(number).name == "stablehlo.add"]
    first = arrays.operation(additions[0])
    locations = [str(arrays.operation(number).location) for number in additions]
    prototype = ir.Operation.create(
        "stablehlo.subtract", [first.results[0].type], list(first.operands), loc=ir.Location.unknown(first.context)
    )
    arrays.replace({arrays.signatures[number]: prototype for number in additions[:1]})
    names = [arrays.operation(number).name for number in additions]
    assert names == ["stablehlo.subtract", "stablehlo.add", "stablehlo.add"]
    assert [str(arrays.operation(number).location) for number in additions] == locations
    (result,) = arrays.results(additions[0])
    assert arrays.value(result) == arrays.operation(additions[0]).results[0]
    assert arrays.value(result) == arrays.operation(additions[1]).operands[0]
    assert arrays.number_of(arrays.value(result)) == result
    assert "stablehlo.subtract" in [op.name for op in arrays.representatives()]
    assert len(list(ops_below(module))) == len(arrays)


def test_block_arguments_have_no_definer(module) -> None:
    arrays = ModuleArrays(module)
    arguments = ops_below(module)
    function = next(op for op in arguments if op.name == "func.func")
    numbers = [arrays.number_of(argument) for argument in function.regions[0].blocks[0].arguments]
    assert None not in numbers
    assert [arrays.definers[number] for number in numbers if number is not None] == [-1, -1]


def test_a_value_of_another_module_has_no_number(module) -> None:
    other = asm.parse_module("func.func @g(%x: f32) { return }", module.context)
    argument = other.body.operations[0].regions[0].blocks[0].arguments[0]
    assert ModuleArrays(module).number_of(argument) is None


def test_signatures_are_of_name_types_and_attributes(module) -> None:
    def adds(arrays: ModuleArrays) -> list[int]:
        return [arrays.signatures[i] for i in range(len(arrays)) if arrays.operation(i).name == "stablehlo.add"]

    first, second, third = adds(ModuleArrays(module, [sdy.SHARDING]))
    assert first == second != third
    assert len(set(adds(ModuleArrays(module)))) == 3
    arrays = ModuleArrays(module, [sdy.SHARDING])
    representatives = arrays.representatives()
    assert representatives[first] == arrays.operation(arrays.signatures.index(first))


def test_attributes_are_found_once_and_set(module) -> None:
    arrays = ModuleArrays(module)
    indices, distinct = arrays.attributes(sdy.SHARDING)
    assert [index for index in indices if index >= 0] == [0, 0]
    assert [str(sdy.value(attribute).shardings[0].dim_shardings[0]) for attribute in distinct] == ['{"a"}']
    adds = [i for i in range(len(arrays)) if arrays.operation(i).name == "stablehlo.add"]
    wanted = TensorShardingPerValue((TensorSharding.fully_open(2, "m"),))
    with module.context:
        arrays.set_attribute(adds, sdy.SHARDING, sdy.attribute(wanted))
    assert all(sdy.value(arrays.operation(i).attributes[sdy.SHARDING]) == wanted for i in adds)
    assert module.operation.verify()
    assert isinstance(arrays.operation(adds[0]), ir.Operation)
