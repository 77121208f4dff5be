# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of annotating a module with partition specs."""

import pytest

import mlir_shard as ms
from mlir_shard import P

MODULE = """
func.func @main(%x: tensor<8x16xf32> loc("params['w'][0]"), %y: tensor<16x4xf32> loc("y"), %n: i32)
    -> (tensor<8x4xf32> {jax.result_info = "result['out']"}, tensor<8x4xf32>) {
  %0 = stablehlo.dot %x, %y : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32> loc("jit(f)/dot")
  %1 = stablehlo.tanh %0 : tensor<8x4xf32> loc("jit(f)/tanh")
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}
"""
MESH = ms.Mesh({"data": 4, "model": 2})


@pytest.fixture
def module():
    return ms.parse(MODULE, ms.create_context())


def text(module) -> str:
    return ms.print_module(module)


def test_by_order(module) -> None:
    ms.annotate(module, MESH, args=[P("data"), None], results=[None, P(None, ("model",))])
    assert 'sdy.mesh @mesh = <["data"=4, "model"=2]>' in text(module)
    assert '%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}' in text(module)
    assert "%arg1: tensor<16x4xf32>," in text(module)
    assert 'tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}) {' in text(module)


@pytest.mark.parametrize("key", [0, -3, "params['w'][0]", "params.w.0", "params.*", "par*w?0"])
def test_by_index_name_path_and_pattern(module, key) -> None:
    ms.annotate(module, MESH, args={key: P(("data", "model"))})
    assert '%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data", "model"}, {}]>}' in text(module)


def test_the_first_pattern_applies(module) -> None:
    ms.annotate(module, MESH, args={"y": P("model"), 0: P(P.UNCONSTRAINED, "data"), "params*": P("data")})
    assert '%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"data"}]>}' in text(module)
    assert '%arg1: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}' in text(module)


def test_results_and_values_by_name(module) -> None:
    ms.annotate(
        module,
        MESH,
        results={"result.out": P("data")},
        values={"*/tanh": P(None, "model"), "stablehlo.dot": P("model")},
    )
    assert 'stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"model"}]>]>}' in text(module)
    assert '#sdy.sharding_per_value<[<@mesh, [{"model"}, {}]>]>' in text(module)
    assert 'sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, tensor<8x4xf32>) {' in text(module)


def test_a_mesh_of_the_module_is_used(module) -> None:
    ms.annotate(module, MESH, args=[P("data")])
    ms.annotate(module, args=[None, P("data:(1)2")])
    ms.annotate(module, ms.Mesh({"x": 2}), results=[P("x")])
    assert text(module).count("sdy.mesh") == 2
    assert "<@mesh_0, " in text(module)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"args": {"z": P("data")}}, "no argument matches 'z': the arguments are params['w'][0], y, arg2"),
        ({"args": {7: P("data")}}, "no argument matches 7"),
        ({"args": [P()] * 4}, "4 specs are given for 3 arguments"),
        ({"args": [P("dta")]}, "axis 'dta' is not in the mesh <[\"data\"=4, \"model\"=2]>: did you mean 'data'?"),
        ({"args": [P("data", "data")]}, 'axis "data" is already used in dim 0'),
        ({"args": [P(None, None, "data")]}, "has 3 entries, but the tensor has 2 dimensions"),
        ({"args": {"arg2": P()}}, "argument 2 'arg2' has type i32: only tensors"),
        ({"results": {"out": P()}}, "no result matches 'out': the results are result['out'], result1"),
        ({"values": {"sinh": P()}}, "no value matches 'sinh'"),
        ({"args": [P("data:(3)2")]}, "does not divide"),
    ],
)
def test_errors_leave_the_module_unchanged(module, given, message) -> None:
    before = text(module)
    with pytest.raises(ValueError) as error:
        ms.annotate(module, MESH, **given)
    assert message in str(error.value)
    assert text(module) == before


def test_a_mesh_is_needed(module) -> None:
    with pytest.raises(ValueError, match="does not define exactly one: none"):
        ms.annotate(module, args=[P("data")])
    with pytest.raises(ValueError, match="has size 0"):
        ms.annotate(module, ms.Mesh({"x": 0}), args=[P("x")])
    with pytest.raises(TypeError, match="not an entry of a partition spec"):
        P(3)
    with pytest.raises(TypeError, match="is not a partition spec"):
        ms.annotate(module, MESH, args=["data"])


def test_a_spec_of_jax_is_one_of_ours(module) -> None:
    jax = pytest.importorskip("jax")
    theirs = jax.sharding.PartitionSpec("data", jax.sharding.PartitionSpec.UNCONSTRAINED)
    ms.annotate(module, MESH, args=[theirs])
    assert '[{"data"}, {?}]' in text(module)
