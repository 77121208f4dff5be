# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Verification of what has changed, beside the host's verification of everything."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from mlir_shard.dialects import verification
from mlir_shard.dialects.contexts import create_context
from mlir_shard.dialects.parsing import parse
from mlir_shard.dialects.verified import Verified, verified_in
from mlir_shard.host import ir
from mlir_shard.ir.editing import ops_below, replace
from mlir_shard.ir.operation_list import capsules_of

TEXT = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
sdy.mesh @other = <["z"=4]>
func.func private @callee(%a: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x4xf32> {
  %0 = stablehlo.tanh %a : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
func.func @main(%a: tensor<4x4xf32>, %b: tensor<4x8xf32>, %n: tensor<i32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %c = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = call @callee(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = call @callee(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = stablehlo.dot_general %1, %b, contracting_dims = [1] x [0]
      : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{"x"}, {"y"}]> : tensor<4x8xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %5:2 = stablehlo.while(%i = %n, %v = %4) : tensor<i32>, tensor<4xf32>
    cond {
      %6 = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %6 : tensor<i1>
    } do {
      %7 = stablehlo.add %i, %c : tensor<i32>
      %8 = stablehlo.multiply %v, %4 : tensor<4xf32>
      stablehlo.return %7, %8 : tensor<i32>, tensor<4xf32>
    }
  %edge = sdy.data_flow_edge %5#0 : tensor<i32>
  %9 = sdy.manual_computation(%3) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>]
      manual_axes={"x"} (%arg: tensor<2x8xf32>) {
    %10 = stablehlo.exponential %arg : tensor<2x8xf32>
    sdy.return %10 : tensor<2x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %empty = tensor.empty() : tensor<4x8xf32>
  %11 = linalg.matmul ins(%1, %9 : tensor<4x4xf32>, tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %12 = stablehlo.add %11, %9 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>} : tensor<4x8xf32>
  return %12, %5#1 : tensor<4x8xf32>, tensor<4xf32>
}
"""


@pytest.fixture(scope="module")
def context() -> Any:
    return create_context()


def by_host(module: Any) -> bool:
    """What the host, and the verification of all attributes of sdy, say."""
    with contextlib.suppress(ir.MLIRError):
        return bool(module.operation.verify()) and verification.verify(module.operation)
    return False


def known(verified: Verified, module: Any) -> bool:
    """What is said after the verification of a valid module."""
    with contextlib.suppress(ir.MLIRError):
        return verified.verify(module.operation)
    return False


@dataclass
class Changed:
    ops: list[Any] = field(default_factory=list)
    moved: list[Any] = field(default_factory=list)
    attributed: list[Any] = field(default_factory=list)


def known_changed(verified: Verified, module: Any, changed: Changed) -> bool:
    """What is said after the verification of a valid module, of which the changes are known."""
    with contextlib.suppress(ir.MLIRError):
        return verified.verify_changed(
            module.operation, capsules_of(changed.ops), capsules_of(changed.moved), capsules_of(changed.attributed)
        )
    return False


def ops_named(module: Any, name: str) -> list[Any]:
    return [op for op in ops_below(module) if op.name == name]


def _delete_result(module: Any) -> None:
    function = ops_named(module, "func.func")[1]
    function.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get(function.attributes["function_type"].value.inputs, [])
    )


def _use_before_definition(module: Any) -> None:
    product, add = ops_named(module, "stablehlo.dot_general")[0], ops_named(module, "stablehlo.add")[-1]
    add.move_before(product)


def _use_of_a_loop(module: Any) -> None:
    inner = ops_named(module, "stablehlo.multiply")[0]
    ops_named(module, "func.return")[1].operands[1] = inner.results[0]


def _rename_callee(module: Any) -> None:
    ops_named(module, "func.func")[0].attributes["sym_name"] = ir.StringAttr.get("renamed")


def _two_of_a_name(module: Any) -> None:
    meshes = ops_named(module, "sdy.mesh")
    meshes[1].attributes["sym_name"] = meshes[0].attributes["sym_name"]


def _erase_mesh(module: Any) -> None:
    ops_named(module, "sdy.mesh")[0].erase()


def _another_reduction_dim(module: Any) -> None:
    ops_named(module, "stablehlo.reduce")[0].attributes["dimensions"] = ir.DenseI64ArrayAttr.get([0])


def _type_in_a_body(module: Any) -> None:
    body = ops_named(module, "stablehlo.reduce")[0].regions[0].blocks[0]
    body.arguments[0].set_type(ir.RankedTensorType.get([], ir.F64Type.get()))


def _outer_value_in_an_isolated_body(module: Any) -> None:
    constraint = ops_named(module, "sdy.sharding_constraint")[0]
    product = ops_named(module, "stablehlo.exponential")[0]
    product.operands[0] = constraint.results[0]
    product.results[0].set_type(constraint.results[0].type)


SPOILS = [
    _delete_result,
    _use_before_definition,
    _use_of_a_loop,
    _rename_callee,
    _two_of_a_name,
    _erase_mesh,
    _another_reduction_dim,
    _type_in_a_body,
    _outer_value_in_an_isolated_body,
]


@pytest.mark.parametrize("spoil", SPOILS, ids=[one.__name__[1:] for one in SPOILS])
def test_what_becomes_invalid_is_found(spoil: Callable[[Any], None], context: Any) -> None:
    module = parse(TEXT, context)
    verified = Verified()
    assert known(verified, module) and known(verified, module)
    with context, ir.Location.unknown():
        spoil(module)
    assert not known(verified, module)
    assert not by_host(module)


def test_a_module_in_a_module_has_its_own_functions(context: Any) -> None:
    text = """
      func.func private @callee(tensor<4xf32>) -> tensor<4xf32>
      module @inner {
        func.func private @callee(tensor<2xf32>) -> tensor<2xf32>
        func.func @main(%a: tensor<TYPE>) -> tensor<TYPE> {
          %0 = call @callee(%a) : (tensor<TYPE>) -> tensor<TYPE>
          return %0 : tensor<TYPE>
        }
      }"""
    verified = Verified()
    module = parse(text.replace("TYPE", "2xf32"), context)
    assert known(verified, module) and known(verified, module)
    with context, ir.Location.unknown():
        callee = next(op for op in ops_named(module, "func.func") if op.parent.operation.parent is not None)
        wide = ir.RankedTensorType.get([4], ir.F32Type.get())
        callee.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([wide], [wide]))
    assert not known(verified, module)
    assert not by_host(module)


def _mutate(module: Any, choose: random.Random, changed: Changed) -> None:
    """One change. Of terminators, and of types in loops, the host's verifiers would crash."""
    ops = list(ops_below(module))
    op, other = choose.choice(ops), choose.choice(ops)
    values = [result for one in ops for result in one.results]
    kind = choose.randrange(9)
    if kind == 0 and len(op.operands) and len(op.results):
        op.operands[choose.randrange(len(op.operands))] = choose.choice(values)
        changed.ops.append(op)
    elif kind == 1 and len(op.results) and op.parent.operation.name == "func.func":
        op.results[choose.randrange(len(op.results))].set_type(choose.choice(values).type)
        changed.ops.append(op)
    elif kind == 2 and op.name == other.name and len(op.attributes):
        name = choose.choice([one for one, _ in op.attributes.items()])
        if name in other.attributes:
            op.attributes[name] = other.attributes[name]
            changed.attributed.append(op)
    elif kind == 3 and len(op.results) and len(other.results) and op.block == other.block and op != other:
        op.move_before(other)
        choose.choice((changed.ops, changed.moved)).append(op)
    elif kind == 4 and len(op.results) and not any(list(result.uses) for result in op.results):
        for made in (changed.ops, changed.moved, changed.attributed):
            made[:] = [one for one in made if one not in (op, *ops_below(op))]
        op.erase()
    elif kind == 5:
        (sharded,) = [one for one in ops if "sdy.sharding" in one.attributes][:1] or [other]
        if "sdy.sharding" in sharded.attributes:
            op.attributes["sdy.sharding"] = sharded.attributes["sdy.sharding"]
            changed.attributed.append(op)
    elif kind == 8 and len(op.results) and op.block == other.block:
        copied = op.clone(ip=ir.InsertionPoint(other)).operation
        for old, new in zip(op.results, copied.results, strict=True):
            old.replace_all_uses_with(new)
        changed.moved.append(copied)
    elif len(op.regions) and op.name != "func.func":
        if kind == 6:
            copied = op.clone(ip=ir.InsertionPoint(op)).operation
            for old, new in zip(op.results, copied.results, strict=True):
                old.replace_all_uses_with(new)
        else:
            for named in (changed.ops, changed.moved, changed.attributed):
                named[:] = [one for one in named if one != op]
            copied = replace(op, op.name, {}, dropped=(), body=op)
        changed.ops.append(copied)


@pytest.mark.parametrize("seed", range(40))
def test_random_changes_are_judged_as_by_the_host(seed: int, context: Any) -> None:
    choose = random.Random(seed)
    verified = Verified()
    with context, ir.Location.unknown():
        for _ in range(25):
            module = parse(TEXT, context)
            assert known(verified, module)
            changed = Changed()
            for _ in range(choose.randrange(1, 3)):
                _mutate(module, choose, changed)
            expected = by_host(module)
            if choose.randrange(2):
                assert known_changed(verified, module, changed) == expected
            assert known(verified, module) == expected
            if expected:
                # What was valid once is known to be.
                assert known(verified, module)


class ByParts:
    """A module that the host may not verify as a whole."""

    def __init__(self, module: Any) -> None:
        self._CAPIPtr = module.operation._CAPIPtr

    def verify(self) -> bool:
        raise AssertionError("the host verifies the whole")


def test_a_parsed_module_is_not_verified_again() -> None:
    module = parse(TEXT, create_context())
    verified = verified_in(module.context)
    assert verified.verify(ByParts(module))


@pytest.mark.parametrize("is_inside", [False, True])
def test_a_made_loop_may_not_use_what_has_an_edge(is_inside: bool, context: Any) -> None:
    verified = Verified()
    module = parse(TEXT, context)
    assert known(verified, module)
    loop, edge = ops_named(module, "stablehlo.while")[0], ops_named(module, "sdy.data_flow_edge")[0]
    made = loop.clone(ip=ir.InsertionPoint.after(edge)).operation
    user = ops_named(made, "stablehlo.add")[0] if is_inside else made
    user.operands[0] = loop.results[0]
    assert not known_changed(verified, module, Changed([made]))
    assert not by_host(module)


def _moved(module: Any) -> None:
    """Moves a definition behind a use, with neither changed."""
    exponential = ops_named(module, "stablehlo.exponential")[0]
    exponential.move_after(exponential.block.operations[1])


def _moved_into_a_region(module: Any) -> None:
    """Moves a definition to where the use behind it cannot see it; the order of all operations stays."""
    empty, loop = ops_named(module, "tensor.empty")[0], ops_named(module, "sdy.manual_computation")[0]
    empty.move_before(loop.regions[0].blocks[0].operations[1])


def _optional_attribute(module: Any) -> None:
    """Gives an operation an attribute that no other one has, and that is not valid."""
    product = ops_named(module, "stablehlo.dot_general")[0]
    product.attributes["precision_config"] = ir.ArrayAttr.get([ir.Attribute.parse("#stablehlo<precision HIGH>")] * 3)


@pytest.mark.parametrize("is_before", [True, False])
def test_users_of_what_was_moved_come_after_it(is_before: bool, context: Any) -> None:
    module = parse(TEXT, context)
    verified = Verified()
    assert known(verified, module)
    exponential = ops_named(module, "stablehlo.exponential")[0]
    user = next(iter(exponential.results[0].uses)).owner
    if is_before:
        exponential.move_before(user)
    else:
        exponential.move_after(user)
    assert known_changed(verified, module, Changed(moved=[exponential])) == is_before
    assert by_host(module) == is_before


@pytest.mark.parametrize("is_constant", [True, False])
def test_users_that_look_at_constants_are_verified_after_a_move(is_constant: bool, context: Any) -> None:
    text = """
      func.func @main(%a: tensor<2x3xf32>) -> tensor<3x2xf32> {
        %shape = tosa.const_shape {values = dense<[3, 2]> : tensor<2xindex>} : () -> !tosa.shape<2>
        %0 = tosa.reshape %a, %shape : (tensor<2x3xf32>, !tosa.shape<2>) -> tensor<3x2xf32>
        return %0 : tensor<3x2xf32>
      }"""
    module = parse(text, context)
    verified = Verified()
    assert known(verified, module)
    (old,) = ops_named(module, "tosa.const_shape")
    with context, ir.Location.unknown():
        made = old.clone(ip=ir.InsertionPoint(old)).operation
        if not is_constant:
            made.attributes["values"] = ir.DenseElementsAttr.get(np.array([5, 2], np.int64), type=ir.IndexType.get())
    old.results[0].replace_all_uses_with(made.results[0])
    assert known_changed(verified, module, Changed(moved=[made])) == is_constant
    assert by_host(module) == is_constant


@pytest.mark.parametrize("spoil", [_moved, _moved_into_a_region, _optional_attribute])
def test_moves_and_attributes_are_found_after_several_runs(spoil: Callable[[Any], None], context: Any) -> None:
    module = parse(TEXT, context)
    verified = Verified()
    for _ in range(3):
        assert known(verified, module)
    with context, ir.Location.unknown():
        spoil(module)
    assert not known(verified, module)
    assert not by_host(module)


def test_an_attribute_that_is_not_valid_is_found_each_time(context: Any) -> None:
    module = parse(TEXT, context)
    verified = Verified()
    assert known(verified, module)
    add = ops_named(module, "stablehlo.add")[-1]
    with context, ir.Location.unknown():
        add.attributes["sdy.sharding"] = ops_named(module, "sdy.sharding_constraint")[0].attributes["sharding"]
    assert not known(verified, module)
    assert not known(verified, module)
    assert not by_host(module)


GRID = """
shard.grid @grid(shape = 2x4)
func.func @main(%a: tensor<8xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = shard.all_reduce %b on @grid grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.mark.parametrize("asks_for_changes", [False, True])
@pytest.mark.parametrize(
    ("grid", "axes", "is_valid"), [("grid", [0, 1], True), ("grid", [0, 2], False), ("none", [0], False)]
)
def test_collectives_on_grids_are_verified_alone(
    grid: str, axes: list[int], is_valid: bool, asks_for_changes: bool, context: Any
) -> None:
    module, verified = parse(GRID, context), Verified()
    assert known(verified, module)
    first = ops_named(module, "shard.all_reduce")[0]
    a = first.block.arguments[0]
    with ir.InsertionPoint(first), ir.Location.unknown(context):
        made = ir.Operation.create(
            "shard.all_reduce",
            [a.type],
            [a],
            {"grid": ir.FlatSymbolRefAttr.get(grid), "grid_axes": ir.DenseI16ArrayAttr.get(axes)},
        )
    alone: Any = ByParts(module)
    with contextlib.suppress(ir.MLIRError):
        if asks_for_changes:
            assert verified.verify_changed(alone, capsules_of([made]), [], [], ()) == is_valid
        else:
            assert verified.verify(alone) == is_valid
    assert by_host(module) == is_valid


def test_another_grid_is_verified_alone(context: Any) -> None:
    module, verified = parse(GRID, context), Verified()
    assert known(verified, module)
    grid = ops_named(module, "shard.grid")[0]
    with context, ir.Location.unknown():
        grid.attributes["sym_name"] = ir.StringAttr.get("other")
    assert not known(verified, module)
    assert not by_host(module)


@pytest.mark.parametrize("is_valid", [True, False])
def test_many_operations_that_have_moved_are_looked_up(is_valid: bool, context: Any) -> None:
    """Operations behind many that have moved are in place; those that have moved are looked at again."""
    count = 300
    lines = [f"%{i} = stablehlo.negate %a : tensor<4xf32>" for i in range(count)]
    lines += [f"%{count + i} = stablehlo.tanh %{count + i - 1 if i else 'a'} : tensor<4xf32>" for i in range(count)]
    lines += [f"%{2 * count + i} = stablehlo.add %{i}, %{2 * count - 1} : tensor<4xf32>" for i in range(count)]
    body = "\n".join(lines)
    module = parse(f"func.func @main(%a: tensor<4xf32>) {{\n{body}\nreturn\n}}", context)
    verified = Verified()
    assert known(verified, module)
    negates, adds = ops_named(module, "stablehlo.negate"), ops_named(module, "stablehlo.add")
    for op in negates:
        op.move_before(adds[0])
    if not is_valid:
        adds[150].move_before(negates[150])
    assert known(verified, module) == by_host(module) == is_valid
