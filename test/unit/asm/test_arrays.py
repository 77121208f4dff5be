# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of modules as flat arrays, against the same modules read through the bindings."""

from __future__ import annotations

import gc
from array import array

import pytest

from mlir_shard import asm
from mlir_shard.dialects import sdy
from mlir_shard.dialects.contexts import create_context
from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.editing import ops_below
from mlir_shard.sharding import TensorSharding, TensorShardingPerValue

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


def test_columns_outlive_the_arrays_and_cannot_be_changed(module) -> None:
    arrays = ModuleArrays(module)
    columns = arrays.parents, arrays.signatures, arrays.definers
    kept = [list(column) for column in columns]
    del arrays
    gc.collect()
    _fill_freed_memory = [ModuleArrays(module) for _ in range(20)]
    assert [list(column) for column in columns] == kept
    for column in columns:
        with pytest.raises(TypeError, match="read-only"):
            column[0] = 7


def test_columns_of_nothing_are_empty() -> None:
    arrays = ModuleArrays(asm.parse_module("", create_context()))
    assert (list(arrays.parents), list(arrays.definers), arrays.used_once) == ([], [], b"")
    assert list(arrays.use_states([])) == []


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


def test_values_are_found_again_after_the_lookup_table_is_freed(module) -> None:
    arrays = ModuleArrays(module)
    values = [arrays.value(number) for number in range(arrays.value_count)]
    function = number_of(arrays, "func.func")
    arguments = arrays.arguments(function)
    arrays.free_lookup()
    assert arrays.arguments(function) == arguments
    arrays.free_lookup()
    assert list(map(arrays.number_of, values)) == list(range(arrays.value_count))
    prototype = arrays.operation(number_of(arrays, "stablehlo.add")).clone(ip=False)
    arrays.free_lookup()
    arrays.replace({arrays.signatures[number_of(arrays, "stablehlo.add")]: prototype})
    (result,) = arrays.results(number_of(arrays, "stablehlo.add"))
    assert arrays.number_of(arrays.value(result)) == result


def test_operations_of_signatures_come_in_order(module) -> None:
    arrays = ModuleArrays(module)
    found = arrays.with_signatures([op.name in ("stablehlo.add", "func.return") for op in arrays.representatives()])
    names = [op.name for op in ops_below(module)]
    assert found == [index for index, name in enumerate(names) if name in ("stablehlo.add", "func.return")]


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
    assert representatives[first] == arrays.operation(list(arrays.signatures).index(first))


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


def number_of(arrays: ModuleArrays, name: str) -> int:
    return next(number for number in range(len(arrays)) if arrays.operation(number).name == name)


def test_arguments_of_the_first_block(module) -> None:
    arrays = ModuleArrays(module)
    for name in ("func.func", "sdy.named_computation", "sdy.mesh", "func.return"):
        number = number_of(arrays, name)
        regions = arrays.operation(number).regions
        arguments = list(regions[0].blocks[0].arguments) if len(regions) else []
        assert [arrays.value(value) for value in arrays.arguments(number)] == arguments


def test_values_that_are_used_once(module) -> None:
    arrays = ModuleArrays(module)
    counts = [len(list(arrays.value(value).uses)) for value in range(arrays.value_count)]
    assert [bool(once) for once in arrays.used_once] == [count == 1 for count in counts]
    assert {0, 1, 2} <= set(counts)


def test_what_is_in_no_closed_operation(module) -> None:
    arrays = ModuleArrays(module)
    firsts = arrays.representatives()
    asked: list[int] = []

    def closes(signature: int) -> bool | None:
        assert signature not in asked
        asked.append(signature)
        return None if firsts[signature].name == "sdy.named_computation" else False

    def names(ops: list[int]) -> list[str]:
        return [arrays.operation(op).name for op in ops]

    outside = arrays.outermost(closes, lambda op: True)
    assert "stablehlo.multiply" not in names(outside.numbers)
    assert not any(firsts[signature].name == "stablehlo.multiply" for signature in asked)
    asked.clear()
    everything = arrays.outermost(closes, lambda op: False)
    assert everything.numbers == list(range(len(arrays)))
    multiplies = everything.where([first.name == "stablehlo.multiply" for first in firsts])
    assert names(multiplies.numbers) == ["stablehlo.multiply"]


def test_numbers_by_attribute_and_alike_operations(module) -> None:
    arrays = ModuleArrays(module, [sdy.SHARDING])
    numbers = array("i", [0]) * arrays.value_count
    arrays.set_result_numbers(sdy.SHARDING, lambda attribute: [7] * len(sdy.value(attribute).shardings), numbers)
    for number in range(len(arrays)):
        with_sharding = sdy.SHARDING in arrays.operation(number).attributes
        assert all(numbers[value] == 7 * with_sharding for value in arrays.results(number))
    additions = [number for number in range(len(arrays)) if arrays.operation(number).name == "stablehlo.add"]
    # The first addition has a sharding, the second uses the first, and the third has another attribute.
    assert arrays.alike(additions, numbers) == additions
    assert arrays.alike(additions, array("i", [0]) * arrays.value_count) == [additions[0], additions[0], additions[2]]
    with pytest.raises(ValueError, match="a number for each value"):
        arrays.alike(additions, array("i"))


def test_states_are_written_as_attributes(module) -> None:
    arrays = ModuleArrays(module)
    number = number_of(arrays, "stablehlo.multiply")
    place, argument = arrays.results(number)[0] + 1, arrays.arguments(number_of(arrays, "func.func"))[0] + 1
    before = array("i", [-1]) * (arrays.value_count + 1)
    now = before[:]
    now[place] = now[argument] = now[0] = 3
    context = module.context
    writable = [first.name == "stablehlo.multiply" for first in arrays.representatives()]
    others, written = arrays.write_states(
        now,
        before,
        writable,
        "state",
        lambda state: ir.IntegerAttr.get(ir.IntegerType.get_signless(32, context), state),
    )
    assert (sorted(others), list(written)) == ([0, argument], [number])
    carrying = [op for op in range(len(arrays)) if "state" in arrays.operation(op).attributes]
    assert carrying == [number] and arrays.operation(number).attributes["state"].value == 3


def test_optional_attributes_count_in_signatures() -> None:
    high, mixed = "precision = [HIGHEST, HIGHEST], ", "precision = [HIGHEST, DEFAULT], "
    cases = ["", mixed, "", high, mixed]
    dots = [
        f"%{i} = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0], {case}"[:-2]
        + " : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>"
        for i, case in enumerate(cases)
    ]
    text = "func.func @f(%x: tensor<4x4xf32>) {\n" + "\n".join(dots) + "\nreturn\n}"
    arrays = ModuleArrays(asm.parse_module(text, create_context()))
    numbers = [arrays.signatures[op] for op in range(len(arrays)) if "dot" in arrays.operation(op).name]
    assert [numbers.index(number) for number in numbers] == [0, 1, 0, 3, 1]


def test_the_module_lives_as_long_as_its_arrays() -> None:
    arrays = ModuleArrays(asm.parse_module("func.func private @f()", create_context()))
    gc.collect()
    assert arrays.operation(0).name == "func.func"
