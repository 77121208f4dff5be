# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of generated views of operations, which build operations and read their parts."""

from __future__ import annotations

import enum
import inspect
import sys
import types
from typing import Any

import numpy as np
import pytest

from mlir_shard import host
from mlir_shard.dialects import sdy
from mlir_shard.dialects.contexts import create_context
from mlir_shard.host import ir
from mlir_shard.ods.generate import module_source
from mlir_shard.ods.reader import read
from mlir_shard.sharding import (
    AxisRef,
    AxisRefList,
    DimensionSharding,
    ManualAxes,
    Mesh,
    MeshAxis,
    PropagationDirection,
    ReductionOp,
    TensorSharding,
    TensorShardingPerValue,
)

SHARDING = TensorSharding("mesh", (DimensionSharding((AxisRef("x"),), True), DimensionSharding((), False)))
OTHER = TensorSharding("mesh", (DimensionSharding((), True), DimensionSharding((AxisRef("x"),), True)))


@pytest.fixture
def tensor() -> Any:
    """Provides a tensor<8x16xf32> in a module whose context and insertion point are the current ones."""
    context = create_context()
    with context, ir.Location.unknown():
        module = ir.Module.parse(
            'func.func private @f(%arg0: tensor<8x16xf32>) { "test.end"() : () -> () }'.replace(
                '"test.end"() : () -> ()', "return"
            )
        )
        sdy_module = module.body
        with ir.InsertionPoint.at_block_begin(sdy_module):
            sdy.MeshOp("mesh", Mesh((MeshAxis("x", 2),)))
        function = sdy_module.operations[1]
        with ir.InsertionPoint(function.regions[0].blocks[0].operations[0]):
            yield function.regions[0].blocks[0].arguments[0]
        assert module.operation.verify()


def test_values_become_attributes(tensor: Any) -> None:
    op = sdy.ReshardOp(tensor, SHARDING)
    assert op.input == tensor
    assert op.result.type == tensor.type
    assert isinstance(op.sharding, sdy.TensorShardingAttr)
    assert op.sharding.value == SHARDING
    assert op.sharding.dim_shardings == SHARDING.dim_shardings
    assert sdy.ReshardOp(tensor, op.sharding).sharding == op.sharding


def test_attributes_can_be_set(tensor: Any) -> None:
    op = sdy.ReshardOp(tensor, SHARDING)
    op.sharding = OTHER
    assert op.sharding.value == OTHER


def test_operations_stand_for_their_result(tensor: Any) -> None:
    op = sdy.ReshardOp(sdy.ReshardOp(tensor, SHARDING), OTHER)
    assert op.input.owner.name == "sdy.reshard"
    assert op.result.type == tensor.type


def test_optional_attributes(tensor: Any) -> None:
    op = sdy.DataFlowEdgeOp(sdy.ShardingConstraintOp(tensor, SHARDING).operation.operands[0])
    assert op.sharding is None
    op.sharding = SHARDING
    assert op.sharding.value == SHARDING
    op.sharding = None
    assert "sharding" not in op.operation.attributes
    op.operation.erase()


def test_enums(tensor: Any) -> None:
    for direction in (PropagationDirection.FORWARD, "FORWARD", 1):
        op = sdy.PropagationBarrierOp(tensor, direction)
        assert op.allowed_direction is PropagationDirection.FORWARD
        assert str(op.operation.attributes["allowed_direction"]) == "1 : i32"
    with pytest.raises(ValueError, match="invalid value 'UP': expected one of NONE, FORWARD, BACKWARD, BOTH"):
        sdy.PropagationBarrierOp(tensor, "UP")


def test_default_values(tensor: Any) -> None:
    axes = AxisRefList((AxisRef("x"),))
    reduced = TensorSharding("mesh", (DimensionSharding((), True),) * 2)
    op = sdy.AllReduceOp(tensor, axes, reduced)
    assert "reduction_op" not in op.operation.attributes
    assert op.reduction_op is ReductionOp.SUM
    op.reduction_op = "max"
    assert op.reduction_op is ReductionOp.MAX
    assert sdy.AllReduceOp(tensor, axes, reduced, reduction_op=ReductionOp.MIN).reduction_op is ReductionOp.MIN


def test_builtin_attributes(tensor: Any) -> None:
    op = sdy.ShardingGroupOp(tensor, 3)
    assert str(op.group_id) == "3 : i64"
    op.group_id = 4
    assert op.group_id.value == 4


def test_the_type_of_a_constant_is_that_of_its_elements(tensor: Any) -> None:
    elements = np.arange(6, dtype=np.float32).reshape(2, 3)
    op = sdy.ConstantOp(elements)
    assert str(op.output.type) == "tensor<2x3xf32>"
    assert np.array_equal(np.array(ir.DenseFPElementsAttr(op.value)), elements)


def test_regions_and_groups_of_values(tensor: Any) -> None:
    shardings = TensorShardingPerValue((SHARDING, SHARDING))
    op = sdy.ManualComputationOp([tensor.type] * 2, [tensor, tensor], shardings, shardings, ManualAxes(("x",)))
    local = ir.RankedTensorType.get([4, 16], ir.F32Type.get())
    block = op.body.blocks.append(local, local)
    with ir.InsertionPoint(block):
        sdy.ReturnOp(block.arguments)
    assert list(op.tensors) == [tensor, tensor]
    assert [result.type for result in op.outputs] == [tensor.type] * 2
    assert op.manual_axes.value_ == ("x",)


def test_names_that_mean_something_else_already(tensor: Any) -> None:
    op = sdy.NamedComputationOp([tensor.type], "f", [tensor], in_shardings=TensorShardingPerValue((SHARDING,)))
    block = op.body.blocks.append(tensor.type)
    with ir.InsertionPoint(block):
        sdy.ReturnOp([block.arguments[0]])
    assert op.name == "sdy.named_computation"
    assert op.name_.value == "f"
    assert op.out_shardings is None


def test_operations_found_in_a_module_have_these_views(tensor: Any) -> None:
    sdy.ReshardOp(tensor, SHARDING)
    (use,) = tensor.uses
    assert isinstance(use.owner.opview, sdy.ReshardOp)


TOY = """\
include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
def Toy : Dialect { let name = "toy"; let cppNamespace = "::toy"; }
def Color : I32EnumAttr<"Color", "color", [I32EnumAttrCase<"RED", 0>, I32EnumAttrCase<"BLUE", 5>]> {
  let cppNamespace = "::toy";
}
class Toy_Op<string mnemonic, list<Trait> traits = []> : Op<Toy, mnemonic, traits>;
def MiddleOp : Toy_Op<"middle"> {
  let arguments = (ins AnyType:$first, Variadic<AnyType>:$rest, AnyType:$last);
  let results = (outs I32:$count, Variadic<AnyType>:$others);
}
def GroupsOp : Toy_Op<"groups", [AttrSizedOperandSegments, AttrSizedResultSegments]> {
  let arguments = (ins Variadic<AnyType>:$left, AnyType:$one, Optional<AnyType>:$right);
  let results = (outs Optional<AnyType>:$maybe, Variadic<AnyType>:$all);
}
def MaybeOp : Toy_Op<"maybe"> {
  let arguments = (ins Optional<AnyType>:$in);
}
def PlainOp : Toy_Op<"plain"> {
  let arguments = (ins
    UnitAttr:$flag, DefaultValuedAttr<I64Attr, "7">:$number, OptionalAttr<Color>:$color,
    OptionalAttr<DenseI64ArrayAttr>:$list);
}
def RegionsOp : Toy_Op<"regions"> {
  let regions = (region AnyRegion:$first, AnyRegion);
}
def SameOp : Toy_Op<"same", [AllTypesMatch<["a", "r"]>]> {
  let arguments = (ins AnyType:$a);
  let results = (outs AnyType:$r);
}
"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Returns the generated module of a dialect in which each operation is of another kind."""
    path = tmp_path_factory.mktemp("toy") / "toy.td"
    path.write_text(TOY)
    values = types.ModuleType("toy_values")
    vars(values)["Color"] = enum.Enum("Color", ["RED", "BLUE"])
    module = types.ModuleType("toy_gen")
    sys.modules[values.__name__] = values
    try:
        exec(compile(module_source(read(path), "toy.td", values.__name__), "toy_gen", "exec"), vars(module))
    finally:
        del sys.modules[values.__name__]
    return module


@pytest.fixture
def value(toy: Any) -> Any:
    """Provides an i32 in a context in which the dialect is loaded."""
    context = create_context()
    with context, ir.Location.unknown():
        for text in toy.IRDL:
            host.dialect("irdl").load_dialects(ir.Module.parse(text))
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            i32 = ir.IntegerType.get_signless(32)
            yield host.dialect("arith").ConstantOp(i32, 0).result
        assert module.operation.verify()


def test_a_group_between_single_values(toy: Any, value: Any) -> None:
    f32 = ir.F32Type.get()
    op = toy.MiddleOp([f32, f32], value, [value, value, value], value)
    assert (op.first, list(op.rest), op.last) == (value, [value] * 3, value)
    assert str(op.count.type) == "i32"
    assert [result.type for result in op.others] == [f32, f32]


def test_several_groups(toy: Any, value: Any) -> None:
    op = toy.GroupsOp(None, [value.type], [value, value], value)
    assert (list(op.left), op.one, op.right) == ([value, value], value, None)
    assert (op.maybe, len(op.all)) == (None, 1)
    op = toy.GroupsOp(value.type, [], [], value, right=value)
    assert (list(op.left), op.one, op.right) == ([], value, value)
    assert (op.maybe.type, len(op.all)) == (value.type, 0)


def test_an_optional_value(toy: Any, value: Any) -> None:
    assert toy.MaybeOp().in_ is None
    assert toy.MaybeOp(in_=value).in_ == value


def test_attributes(toy: Any, value: Any) -> None:
    op = toy.PlainOp()
    assert (op.flag, op.number.value, op.color, op.list) == (False, 7, None, None)
    assert len(op.operation.attributes) == 0
    op = toy.PlainOp(flag=True, number=8, color="BLUE", list=[1, 2])
    assert (op.flag, op.number.value, op.color.name, list(op.list)) == (True, 8, "BLUE", [1, 2])
    assert op.operation.attributes["color"].value == 5
    op.flag, op.color = False, None
    assert (op.flag, op.color) == (False, None)


def test_regions_without_a_name(toy: Any, value: Any) -> None:
    op = toy.RegionsOp()
    assert (op.first, op.region1) == (op.operation.regions[0], op.operation.regions[1])


def test_types_that_follow(toy: Any, value: Any) -> None:
    assert toy.SameOp(value).r.type == value.type


def test_signatures(toy: Any) -> None:
    signatures = {op.__name__: str(inspect.signature(op)).replace("ir.", "") for op in toy.OPS}
    assert signatures["SameOp"].startswith("(a: 'Value | Operation | OpView', *, r: 'Type | None' = None, loc:")
    assert signatures["MiddleOp"].startswith("(others: 'Sequence[Type]', first: ")
    assert "flag: 'bool' = False" in signatures["PlainOp"]
