# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of modules from text, of contexts made by the caller, and of sdy attributes from text."""

import pytest

import mlir_shard
from mlir_shard.dialects import sdy
from mlir_shard.dialects.contexts import prepare
from mlir_shard.host import ir, passmanager

PROGRAM = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                %b: tensor<8xf32> {sdy.sharding = SHARDING}) -> tensor<8xf32> {
  %0 = arith.addf %a, %b : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
SHARDED = PROGRAM.replace("SHARDING", '#sdy.sharding<@mesh, [{"x"}]>')


def test_a_context_is_made() -> None:
    assert mlir_shard.parse(SHARDED).context.is_dialect_loaded("sdy")


def test_a_context_made_otherwise_is_given_the_dialects() -> None:
    context = ir.Context()
    module = mlir_shard.parse(SHARDED, context)
    assert module.context == context
    prepare(context)
    assert mlir_shard.print_module(module).count("sdy.sharding") == 4


@pytest.mark.parametrize(
    ("sharding", "line", "column", "message"),
    [
        ('#sdy.sharding<@mesh, [{"y"}]>', 4, 74, 'argument 1: dim 0: unknown axis "y": the mesh has "x"'),
        ('#sdy.sharding<@other, [{"x"}]>', 4, 65, "argument 1: unknown mesh @other: the module has @mesh"),
        ("#sdy.sharding<@mesh, [{}, {}]>", 3, 1, "argument 1: the sharding has 2 dimensions, but the tensor has 1"),
    ],
)
def test_shardings_are_verified(sharding: str, line: int, column: int, message: str) -> None:
    with pytest.raises(mlir_shard.ParseError) as raised:
        mlir_shard.parse(PROGRAM.replace("SHARDING", sharding), filename="program.mlir")
    (diagnostic,) = raised.value.diagnostics
    assert str(diagnostic.location) == f'loc("program.mlir":{line}:{column})'
    assert diagnostic.message == f"'func.func' op {message}"


def test_passes_between_those_of_a_host_manager() -> None:
    context = ir.Context()
    with context:
        module = ir.Module.parse(
            "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n"
            "  %0 = math.exp %a : tensor<8xf32>\n"
            "  return %0 : tensor<8xf32>\n"
            "}"
        )
        mlir_shard.annotate(module, mlir_shard.Mesh({"x": 2}), args=[mlir_shard.P("x")])
        manager = passmanager.PassManager.parse("builtin.module(canonicalize)")
        manager.add(lambda op, _: mlir_shard.run(op, "builtin.module(shard-propagate)"))
        manager.add("cse")
        manager.run(module.operation)
    assert 'math.exp %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}' in mlir_shard.print_module(
        module
    )


def test_attributes_from_text() -> None:
    with mlir_shard.create_context():
        sharding = sdy.TensorShardingAttr.parse('#sdy.sharding<@mesh, [{"x"}, {?}]>')
        assert isinstance(sharding, sdy.TensorShardingAttr)
        assert (
            sdy.TensorShardingAttr.parse(str(sharding.value)) == sharding == sdy.TensorShardingAttr.get(sharding.value)
        )
        assert sdy.MeshAttr.parse('#sdy.mesh<["x"=2]>').axes[0].size == 2
        with pytest.raises(ValueError, match=r"is not a valid #sdy\.mesh: expected"):
            sdy.MeshAttr.parse("#sdy.mesh<[x=2]>")
