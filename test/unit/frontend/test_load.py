# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of loading programs from files of each kind."""

import io

import numpy as np
import pytest

import mlir_shard as ms
from mlir_shard import P, host

TEXT = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
"""


def check(program) -> None:
    assert "tensor<2x4xf32>" in str(program.partition())


def test_text(tmp_path) -> None:
    path = tmp_path / "a.mlir"
    path.write_text(TEXT)
    program = ms.load(path)
    check(program)
    a = np.ones((4, 4), np.float32)
    np.testing.assert_array_equal(program.compile()(a), a + a)
    with pytest.raises(TypeError, match="no argument named 'b'"):
        program.compile()(b=a)


def test_bytecode(tmp_path) -> None:
    path = tmp_path / "a.mlirbc"
    written = io.BytesIO()
    ms.parse(TEXT, ms.create_context()).operation.write_bytecode(written)
    path.write_bytes(written.getvalue())
    check(ms.load(path))


def test_a_portable_artifact(tmp_path) -> None:
    path = tmp_path / "a.stablehlo"
    stablehlo = host.module("_mlir_libs._stablehlo")
    text = "func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> { return %a : tensor<4x4xf32> }"
    path.write_bytes(stablehlo.serialize_portable_artifact_str(text, stablehlo.get_current_version()))
    check(ms.load(path, mesh=ms.Mesh({"x": 2})).annotate(args=[P("x")]))


def test_an_artifact_of_jax_export(tmp_path) -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("flatbuffers")
    path = tmp_path / "a.jax"
    mesh = jax.sharding.AbstractMesh((2,), ("x",))
    with jax.sharding.use_abstract_mesh(mesh):
        function = jax.jit(lambda tree: jax.lax.with_sharding_constraint(tree["a"] * 2, jax.P("x")))
        exported = jax.export.export(function)({"a": jax.ShapeDtypeStruct((4, 4), np.float32)})
    path.write_bytes(exported.serialize())
    program = ms.load(path)
    check(program)
    a = np.ones((4, 4), np.float32)
    np.testing.assert_array_equal(program.compile()({"a": a}), a * 2)


def test_a_file_that_is_no_module(tmp_path) -> None:
    path = tmp_path / "a.mlir"
    path.write_text("func.func @main( {")
    with pytest.raises(ms.ParseError):
        ms.load(path)
    with pytest.raises(FileNotFoundError):
        ms.load(tmp_path / "b.mlir")
