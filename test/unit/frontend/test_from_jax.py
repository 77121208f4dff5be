# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of programs from JAX, which are partitioned and called with pytrees."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mlir_shard as ms
from mlir_shard import P
from mlir_shard.runtime import RunError

MESH = ms.Mesh({"data": 4, "model": 2})
FLOATS = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return FLOATS.standard_normal(shape).astype(np.float32)


def step(params, x):
    hidden = jax.lax.with_sharding_constraint(jnp.tanh(x @ params["w1"]), jax.P("data", "model"))
    return {"y": hidden @ params["w2"], "loss": jnp.sum(hidden)}


PARAMS = {"w1": floats(16, 32), "w2": floats(32, 8)}
X = floats(8, 16)


def test_names_and_shardings() -> None:
    program = ms.from_jax(step, PARAMS, X, mesh=MESH, in_shardings=({"w1": None, "w2": P("model")}, P("data")))
    assert program.argument_names == ("params['w1']", "params['w2']", "x")
    assert program.result_names == ("result['loss']", "result['y']")
    found = program.shardings()
    assert str(found["params.w1"]) == '<@mesh, [{}, {"model"}]>'
    assert str(found["x"]) == '<@mesh, [{"data"}, {}]>'
    assert str(found["jit(step)/tanh"]) == '<@mesh, [{"data"}, {"model"}]>'
    assert [line.split()[:3] for line in str(found).splitlines()[-2:]] == [
        ["result", "result['loss']", "tensor<f32>"],
        ["result", "result['y']", "tensor<8x8xf32>"],
    ]


@pytest.mark.parametrize("engine", ["mpi", "pjrt"])
def test_it_computes_what_jax_does(engine) -> None:
    program = ms.from_jax(
        step, PARAMS, X, mesh=MESH, in_shardings=({"w1": P(None, "model"), "w2": P("model")}, P("data"))
    )
    got = program.compile(engine)(PARAMS, X)
    wanted = jax.jit(
        lambda params, x: {"y": jnp.tanh(x @ params["w1"]) @ params["w2"], "loss": jnp.tanh(x @ params["w1"]).sum()}
    )(PARAMS, X)
    assert set(got) == {"y", "loss"}
    for name in got:
        np.testing.assert_allclose(got[name], wanted[name], rtol=1e-4, atol=1e-4)


def test_the_mesh_may_be_larger_than_the_machine() -> None:
    like = jax.tree.map(lambda one: jax.ShapeDtypeStruct((one.shape[0] * 64, one.shape[1] * 64), one.dtype), PARAMS)
    mesh = ms.Mesh({"data": 64, "model": 64})
    program = ms.from_jax(
        step, like, jax.ShapeDtypeStruct((512, 1024), jnp.float32), mesh=mesh, in_shardings=(None, P("data"))
    )
    local = program.partition("stablehlo")
    assert "tensor<8x1024xf32>" in str(local)
    assert local.communication.collectives
    assert "all_reduce" in str(local.communication)


def test_a_prefix_of_specs() -> None:
    program = ms.from_jax(
        step, PARAMS, X, mesh=MESH, in_shardings=(P("model"), P("data")), out_shardings={"loss": None, "y": P()}
    )
    text = str(program)
    assert text.count('[{"model"}, {}]') == 2
    assert "tensor<8x8xf32> {jax.result_info = \"result['y']\", sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}" in text


def test_none_in_a_pytree_has_no_spec() -> None:
    """JAX counts None as a subtree without leaves, both in arguments and in results, and as a spec of any subtree."""

    def function(params, nothing, x):
        assert nothing is None
        return {"bias": params["bias"], "y": x @ params["w"]}

    params = {"bias": None, "w": floats(16, 8)}
    specs = ({"bias": None, "w": P(None, "model")}, None, P("data"))
    program = ms.from_jax(
        function, params, None, X, mesh=MESH, in_shardings=specs, out_shardings={"bias": None, "y": P("data")}
    )
    assert program.argument_names == ("params['w']", "x")
    (signature,) = (line for line in str(program).splitlines() if "@main" in line)
    w, x, y = re.findall(r"#sdy.sharding<@mesh, (.*?)>}", signature)
    assert (w, x, y) == ('[{}, {"model"}]', '[{"data"}, {}]', '[{"data"}, {}]')
    got = program.compile("pjrt")(params, None, X)
    assert got["bias"] is None
    np.testing.assert_allclose(got["y"], X @ params["w"], rtol=1e-5)


def test_keyword_arguments() -> None:
    """As in `jax.jit`, `in_shardings` is for positional arguments; `shard` is for all of them."""
    y = floats(16, 8)
    program = ms.from_jax(
        lambda x, y: x @ y, X, y=y, mesh=MESH, in_shardings=(P("data"),), shard={"y": P(None, "model")}
    )
    assert program.argument_names == ("x", "y")
    assert re.findall(r"#sdy.sharding<@mesh, (.*?)>}", str(program)) == ['[{"data"}, {}]', '[{}, {"model"}]']
    np.testing.assert_allclose(program.compile("pjrt")(X, y=y), X @ y, rtol=1e-5)


def test_patterns() -> None:
    program = ms.from_jax(step, PARAMS, X, mesh=MESH, shard={"params.*": P(None, "model"), "x": P("data")})
    assert str(program).count('[{}, {"model"}]') == 2


@pytest.mark.parametrize("how", ["jitted", "lowered", "exported"])
def test_what_is_jitted_lowered_or_exported_already(how) -> None:
    def function(a, unused, b):
        return (a + b,)

    a, b = floats(8, 4), floats(8, 4)
    jitted = jax.jit(function)
    if how == "jitted":
        program = ms.from_jax(jitted, a, a, b, mesh=MESH, in_shardings=P("data"))
    elif how == "lowered":
        program = ms.from_jax(jitted.lower(a, a, b), mesh=MESH, in_shardings=P("data"))
    else:
        program = ms.from_jax(jax.export.export(jitted)(a, a, b), mesh=MESH, in_shardings=P("data"))
    assert program.argument_names == ("a", "b")
    (got,) = program.compile("pjrt")(a, a, b)
    np.testing.assert_allclose(got, a + b, rtol=1e-6)


def test_dimension_variables_get_sizes() -> None:
    batch, length = jax.export.symbolic_shape("batch, length")
    function = jax.jit(lambda w, x: (jnp.tanh(x @ w).sum(1), jnp.arange(x.shape[1])))
    w, x = jax.ShapeDtypeStruct((4, 4), np.float32), jax.ShapeDtypeStruct((batch, length, 4), np.float32)
    program = ms.from_jax(jax.export.export(function)(w, x), mesh=MESH, in_shardings=(None, P("data")))
    with pytest.raises(ms.PassFailure, match="requires static shapes"):
        program.partition()
    with pytest.raises(ms.PassFailure, match=r"argument 1 has type tensor<8x\?x4xf32>: .* --shape length=SIZE"):
        program.with_shapes({"batch": 8})
    static = program.with_shapes({"batch": 8, "length": 3})
    w, x = floats(4, 4), floats(8, 3, 4)
    total, positions = static.compile("pjrt")(w, x)
    np.testing.assert_allclose(total, np.tanh(x @ w).sum(1), rtol=1e-5)
    np.testing.assert_array_equal(positions, np.arange(3))
    assert str(program.with_shapes({1: (8, 3, 4)})) == str(static)


def test_shardings_of_jax_itself() -> None:
    mesh = jax.sharding.AbstractMesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    sharded = jax.ShapeDtypeStruct((8, 16), jnp.float32, sharding=jax.NamedSharding(mesh, jax.P("data", None)))

    def mapped(x):
        return jax.shard_map(
            lambda one: jax.lax.psum(one, "data"), mesh=mesh, in_specs=jax.P("data"), out_specs=jax.P()
        )(x)

    program = ms.from_jax(lambda x: jnp.sin(x) * 2, sharded, mesh=mesh)
    assert "tensor<2x16xf32>" in str(program.partition())
    x = floats(8, 16)
    got = ms.from_jax(mapped, jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharded.sharding), mesh=mesh).compile()(x)
    np.testing.assert_allclose(got, x.reshape(4, 2, 16).sum(0), rtol=1e-4, atol=1e-5)


def test_keys_half_floats_and_flags() -> None:
    def function(key, x, flag):
        key, used = jax.random.split(key)
        return key, jnp.where(flag, x + jax.random.normal(used, x.shape, x.dtype), x)

    key, x = jax.random.key(3), jnp.asarray(floats(8, 4), jnp.bfloat16)
    program = ms.from_jax(function, key, x, True, mesh=MESH, in_shardings=(None, P("data"), None))
    got_key, got = program.compile("pjrt")(key, x, True)
    wanted_key, wanted = jax.jit(function)(key, x, True)
    assert (jax.random.key_data(got_key) == jax.random.key_data(wanted_key)).all()
    np.testing.assert_allclose(got.astype(np.float32), wanted.astype(np.float32), rtol=2e-2, atol=2e-2)


def test_errors() -> None:
    with pytest.raises(TypeError, match="not a function, a Lowered or an Exported"):
        ms.from_jax(3)
    with pytest.raises(ValueError, match="in_shardings is not a pytree prefix"):
        ms.from_jax(step, PARAMS, X, mesh=MESH, in_shardings=({"w1": P()}, P()))
    with pytest.raises(
        ValueError, match=r"argument 2 'x' of type tensor<8x16xf32>: axis 'dat' is not in the mesh .* 'data'\?"
    ):
        ms.from_jax(step, PARAMS, X, mesh=MESH, in_shardings=(None, P("dat")))
    executable = ms.from_jax(step, PARAMS, X, mesh=MESH, in_shardings=(None, P("data"))).compile("pjrt")
    with pytest.raises(TypeError, match="the arguments have the structure"):
        executable(PARAMS)
    with pytest.raises(Exception, match=r"argument 'x' of the program is .*8x16xf32.* shape 4x16"):
        executable(PARAMS, X[:4])


@pytest.mark.parametrize("ordered", [False, True])
def test_what_is_printed_is_left_out_on_request(ordered) -> None:
    def function(x):
        jax.debug.print("sum {}", x.sum(), ordered=ordered)
        return 2 * x

    x = floats(8, 4)
    program = ms.from_jax(function, x, mesh=MESH, in_shardings=P("data"))
    with pytest.raises(ms.PassFailure, match=r"cannot be partitioned: .*; .* without_callbacks\(\) .* removes it"):
        program.partition()
    np.testing.assert_array_equal(program.without_callbacks().compile("pjrt")(x), 2 * x)


def test_what_is_computed_in_python_is_named() -> None:
    def function(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    program = ms.from_jax(function, floats(8, 4), mesh=MESH, in_shardings=P("data"))
    with pytest.raises(RunError, match="calls back into the process that traced the program"):
        program.without_callbacks().compile("pjrt")
