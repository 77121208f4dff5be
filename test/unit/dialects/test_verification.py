# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the verification of invalid modules that only Python can build, because the parser rejects their text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mlir_shard import asm
from mlir_shard.dialects import sdy, verification
from mlir_shard.dialects.contexts import create_context
from mlir_shard.dialects.verifiers.operations import VERIFIERS
from mlir_shard.host import ir
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding, TensorShardingPerValue

PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @f(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
  %2 = sdy.reshard %1 <@mesh, [{"y"}]> : tensor<8xf32>
  %3 = sdy.all_gather [{"y"}] %2 out_sharding=<@mesh, [{}]> : tensor<8xf32>
  return %3 : tensor<8xf32>
}
"""


@pytest.fixture
def errors() -> list[str]:
    return []


@pytest.fixture
def context(errors: list[str]) -> Iterator[Any]:
    context = create_context()

    def record(diagnostic: Any) -> bool:
        errors.append(diagnostic.message)
        return True

    context.emit_error_diagnostics = True
    handler = context.attach_diagnostic_handler(record)
    with context, ir.Location.unknown():
        yield context
    handler.detach()


@pytest.fixture
def module(context: Any) -> Any:
    return asm.parse_module(PROGRAM, context)


def ops(module: Any, name: str) -> list[Any]:
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.operation.name == name:
            found.append(op.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def host_verifies(op: Any) -> bool:
    try:
        return bool(op.verify())
    except ir.MLIRError:
        return False


def unreadable(mnemonic: str) -> Any:
    return ir.DynamicAttr.get(f"sdy.{mnemonic}", [ir.StringAttr.get("<@mesh, [{")])


def test_every_operation_but_the_terminator_has_a_verifier() -> None:
    names = {f"sdy.{op.mnemonic}" for op in sdy.DIALECT.ops}
    assert set(VERIFIERS) == names - {"sdy.return"}


def test_attributes_alike_are_looked_at_once(module: Any) -> None:
    uses = list(verification.uses(module.operation))
    places = [(use.op.name, use.place) for use in uses]
    assert places == [
        ("func.func", verification.Place.ARGUMENT),
        ("stablehlo.negate", verification.Place.OPERATION),
    ]
    assert verification.verify(module.operation)


def test_unreadable_attribute_of_an_op(module: Any, errors: list[str]) -> None:
    reshard = ops(module, "sdy.reshard")[0]
    reshard.attributes["sharding"] = unreadable("sharding")
    assert not VERIFIERS["sdy.reshard"](reshard)
    assert len(errors) == 1
    assert "'sdy.reshard' op attribute 'sharding' must be a #sdy.sharding: " in errors[0]


def test_unreadable_discardable_attribute(module: Any, errors: list[str]) -> None:
    negate = ops(module, "stablehlo.negate")[1]
    negate.attributes["sdy.sharding"] = unreadable("sharding_per_value")
    assert not verification.verify(module.operation)
    assert len(errors) == 1
    assert "'stablehlo.negate' op attribute 'sdy.sharding' must be a #sdy.sharding_per_value: " in errors[0]


def test_unreadable_sharding_of_an_operand_counts_as_none(module: Any, errors: list[str]) -> None:
    ops(module, "sdy.reshard")[0].attributes["sharding"] = unreadable("sharding")
    assert not VERIFIERS["sdy.all_gather"](ops(module, "sdy.all_gather")[0])
    assert "the operand must have a sharding" in errors[0]


def test_operand_of_an_op_without_its_attribute_has_no_sharding(module: Any, errors: list[str]) -> None:
    del ops(module, "sdy.reshard")[0].attributes["sharding"]
    assert not VERIFIERS["sdy.all_gather"](ops(module, "sdy.all_gather")[0])
    assert "the operand must have a sharding" in errors[0]


def test_wrong_mesh_is_reported_where_it_is(module: Any, errors: list[str]) -> None:
    mesh = ops(module, "sdy.mesh")[0]
    mesh.attributes["mesh"] = sdy.attribute(Mesh([("x", 0), ("y", 4)]))
    assert not host_verifies(module.operation)
    assert "'sdy.mesh' op attribute 'mesh' must be a #sdy.mesh: mesh axis \"x\" has size 0" in errors[0]


def test_inlined_mesh_is_verified(module: Any, errors: list[str]) -> None:
    wrong = Mesh([("x", 2), ("x", 2)])
    sharding = TensorSharding.closed_with([[AxisRef("x")]], wrong)
    negate = ops(module, "stablehlo.negate")[0]
    negate.attributes["sdy.sharding"] = sdy.attribute(TensorShardingPerValue((sharding,)))
    assert not verification.verify(module.operation)
    assert len(errors) == 1
    assert errors[0].endswith('mesh axis "x" is given 2 times')


def test_operation_without_a_module_knows_no_mesh(context: Any, errors: list[str]) -> None:
    function = ir.Operation.parse("func.func private @f(tensor<8xf32>)")
    sharding = TensorSharding.closed_with([[AxisRef("x")]], "mesh")
    function.operation.attributes["arg_attrs"] = ir.ArrayAttr.get(
        [ir.DictAttr.get({"sdy.sharding": sdy.attribute(sharding)})]
    )
    assert not verification.verify(function.operation)
    assert errors == ["'func.func' op argument 0: unknown mesh @mesh"]


def test_sharding_of_a_wrong_kind_on_an_operand_raises_nothing(module: Any, errors: list[str]) -> None:
    ops(module, "stablehlo.negate")[1].attributes["sdy.sharding"] = ir.StringAttr.get("sharded")
    assert VERIFIERS["sdy.reshard"](ops(module, "sdy.reshard")[0])
    assert errors == []
