# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the verification of changed operations, against the host's verification of all operations."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from dialects.verified_programs import TEXT, ByParts, by_host, known, ops_named

from mlir_shard.dialects.contexts import create_context
from mlir_shard.dialects.parsing import parse
from mlir_shard.dialects.verified import Verified, verified_in
from mlir_shard.dialects.verifiers import checks
from mlir_shard.host import ir
from mlir_shard.ir.operation_list import capsules_of


@pytest.fixture(scope="module")
def context() -> Any:
    return create_context()


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


def test_a_parsed_module_is_not_verified_again() -> None:
    module = parse(TEXT, create_context())
    verified = verified_in(module.context)
    assert verified.verify(ByParts(module))


def _moved(module: Any) -> None:
    """Moves a definition after a use, without changing either."""
    exponential = ops_named(module, "stablehlo.exponential")[0]
    exponential.move_after(exponential.block.operations[1])


def _moved_into_a_region(module: Any) -> None:
    """Moves a definition into a region, where a later use cannot see it; the order of all operations stays the same."""
    empty, loop = ops_named(module, "tensor.empty")[0], ops_named(module, "sdy.manual_computation")[0]
    empty.move_before(loop.regions[0].blocks[0].operations[1])


def _optional_attribute(module: Any) -> None:
    """Gives an operation an invalid attribute that no other operation has."""
    product = ops_named(module, "stablehlo.dot_general")[0]
    product.attributes["precision_config"] = ir.ArrayAttr.get([ir.Attribute.parse("#stablehlo<precision HIGH>")] * 3)


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
    """Operations after many moved ones do not count as moved, and the moved operations are verified again."""
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


def test_of_a_program_that_the_host_verifies_one_reshard_of_each_kind_is_verified(
    context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 60
    reshards = "\n".join(
        f'%{i + 1} = sdy.reshard %{i} <@mesh, [{{"{"xy"[i % 2]}"}}]> : tensor<4xf32>' for i in range(count)
    )
    text = f"""sdy.mesh @mesh = <["x"=2, "y"=2]>
      func.func private @negated(%a: tensor<4xf32>) -> tensor<4xf32> {{ return %a : tensor<4xf32> }}
      func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {{
        {reshards}
        %c = stablehlo.composite "dialect.negate" %{count} {{decomposition = @negated}}
          : (tensor<4xf32>) -> tensor<4xf32>
        return %c : tensor<4xf32>
      }}"""
    module = parse(text, context)
    shapes, plain_shape = [], checks.plain_shape
    monkeypatch.setattr(checks, "plain_shape", lambda type_: shapes.append(type_) or plain_shape(type_))
    assert known(Verified(), module)
    assert 0 < len(shapes) < count
    ops_named(module, "sdy.reshard")[-1].attributes["sharding"] = ir.StringAttr.get("none", context)
    assert not known(Verified(), module)
