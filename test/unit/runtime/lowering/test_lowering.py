# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the lowering from tensors to LLVM: its errors, and that programs from JAX have the results of JAX."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from runtime import in_process

import mlir_shard
from mlir_shard.runtime.compile import compile_module
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.execution import run_program
from mlir_shard.runtime.launch import python_process
from mlir_shard.runtime.launch.mpi_library import MPICH, OPEN_MPI
from mlir_shard.runtime.lowering.lowering_process import LoweringProcess
from mlir_shard.runtime.reference.verify import compare


def reduction(element_type: str, kind: str) -> str:
    type_ = f"tensor<4x{element_type}>"
    return f"""
shard.grid @g(shape = 2x2)
func.func @main(%a: {type_}) -> {type_} {{
  %0 = shard.all_reduce %a on @g grid_axes = [0] reduction = {kind} : {type_} -> {type_}
  return %0 : {type_}
}}"""


@pytest.mark.parametrize(("implementation", "said"), [(MPICH, "OpenMPI"), (OPEN_MPI, "MPICH")])
def test_handles_are_those_of_the_implementation_whatever_the_module_says(implementation: str, said: str) -> None:
    chosen = f'module attributes {{dlti.map = #dlti.map<"MPI:Implementation" = "{said}">}} {{'
    (made,) = LoweringProcess(implementation)([f"{chosen}{reduction('f32', 'sum')}}}"], "main")
    lowered = made.text
    assert "MPI_Allreduce" in lowered
    assert ("ompi_mpi_op_sum" in lowered) == ("ompi_mpi_comm_world" in lowered) == (implementation == OPEN_MPI)
    assert (str(0x58000003) in lowered) == (implementation == MPICH)


def test_only_the_entry_can_be_called_from_outside() -> None:
    text = """
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @other(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @other(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
    lowered = LoweringProcess(compiles=False)([text], "main")[0].text
    assert "@_mlir_ciface_main" in lowered
    assert "@_mlir_ciface_other" not in lowered


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {\n"
            "  %0 = stablehlo.custom_call @f(%a) : (tensor<2x2xf32>) -> tensor<2x2xf32>\n"
            "  return %0 : tensor<2x2xf32>\n}",
            r"LLVM; --engine=pjrt .*\n.*2:8: error: 'stablehlo.custom_call:f' has no lowering to LLVM",
        ),
        (
            "func.func private @absent_here(f32) -> f32\nfunc.func @main(%a: tensor<f32>) -> tensor<f32> {\n"
            "  %x = tensor.extract %a[] : tensor<f32>\n  %0 = func.call @absent_here(%x) : (f32) -> f32\n"
            "  %1 = tensor.from_elements %0 : tensor<f32>\n  return %1 : tensor<f32>\n}",
            "4:8: error: this calls 'absent_here', which no available library defines",
        ),
        (reduction("f32", "average"), r"4:8: error: 'shard.all_reduce' of .* by .*average.* has no lowering to MPI"),
        (reduction("i24", "max"), r"4:8: error: 'shard.all_reduce' of tensor<4xi24> by .*max.* has no lowering to MPI"),
    ],
    ids=["operation", "function", "reduction", "element type"],
)
def test_what_cannot_be_lowered_is_named(text: str, complaint: str) -> None:
    with pytest.raises(RunError, match=complaint):
        LoweringProcess()([text], "main")


def test_a_crash_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import os, sys; print('not a module I know', file=sys.stderr); sys.stderr.flush(); os.abort()"
    monkeypatch.setattr(python_process, "python_command", lambda module: [sys.executable, "-c", script])
    with pytest.raises(RunError, match=r"crashed with SIGABRT; its last output:\n  not a module I know"):
        LoweringProcess()([reduction("f32", "sum")], "main")


@pytest.mark.parametrize(("name", "type_"), [("tanh", "f64"), ("expf", "f32"), ("malloc", "f32"), ("MPI_Init", "f32")])
@pytest.mark.parametrize("entry", [True, False])
def test_functions_may_be_named_like_those_of_libraries(name: str, type_: str, entry: bool) -> None:
    functions = {
        name: f"""
        (%x: tensor<4x{type_}>) -> tensor<4x{type_}> {{
          %0 = stablehlo.exponential %x : tensor<4x{type_}>
          %1 = stablehlo.tanh %0 : tensor<4x{type_}>
          return %1 : tensor<4x{type_}>
        }}"""
    }
    if not entry:
        functions["main"] = f"""
        (%x: tensor<4x{type_}>) -> tensor<4x{type_}> {{
          %0 = call @{name}(%x) : (tensor<4x{type_}>) -> tensor<4x{type_}>
          return %0 : tensor<4x{type_}>
        }}"""
    x = np.linspace(-1, 1, 4, dtype=np.float32 if type_ == "f32" else np.float64)
    kinds = {one: "private " if one != "main" and not entry else "" for one in functions}
    text = "".join(f"func.func {kinds[one]}@{one}{body}" for one, body in functions.items())
    (result,) = in_process.run(text, x)
    np.testing.assert_allclose(result, np.tanh(np.exp(x)), rtol=1e-6)


def test_a_filled_tensor_is_the_destination_of_several_ops() -> None:
    text = """
      func.func @main(%x: tensor<3x4xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>) {
        %one = arith.constant 1.0 : f32
        %empty = tensor.empty() : tensor<4x3xf32>
        %filled = linalg.fill ins(%one : f32) outs(%empty : tensor<4x3xf32>) -> tensor<4x3xf32>
        %0 = linalg.transpose ins(%x : tensor<3x4xf32>) outs(%filled : tensor<4x3xf32>) permutation = [1, 0]
        %1 = linalg.transpose ins(%x : tensor<3x4xf32>) outs(%filled : tensor<4x3xf32>) permutation = [1, 0]
        return %0, %1, %filled : tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>
      }"""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    transposed, again, filled = in_process.run(text, x)
    np.testing.assert_array_equal(transposed, x.T)
    np.testing.assert_array_equal(again, x.T)
    np.testing.assert_array_equal(filled, np.ones((4, 3), np.float32))


@pytest.mark.parametrize("is_first", [True, False])
def test_one_branch_yields_a_slice_and_the_other_a_view_of_a_scalar(is_first: bool) -> None:
    sliced = "scf.yield %slice : tensor<1xf64>"
    viewed = """
          %0 = stablehlo.broadcast_in_dim %scalar, dims = [] : (tensor<f64>) -> tensor<1xf64>
          %1 = stablehlo.negate %0 : tensor<1xf64>
          scf.yield %1 : tensor<1xf64>"""
    # The default is the first region of a switch.
    branches = (
        f"if %is_zero -> (tensor<1xf64>) {{ {sliced} }} else {{ {viewed} }}"
        if is_first
        else f"index_switch %index -> tensor<1xf64> case 0 {{ {viewed} }} default {{ {sliced} }}"
    )
    text = f"""
      func.func @main(%x: tensor<6xf64>, %scalar: tensor<f64>, %at: tensor<i32>, %size: tensor<i32>) -> tensor<1xf64> {{
        %zero = arith.constant 0 : i32
        %number = tensor.extract %at[] : tensor<i32>
        %index = arith.index_cast %number : i32 to index
        %is_zero = arith.cmpi eq, %number, %zero : i32
        %one = tensor.extract %size[] : tensor<i32>
        %length = arith.index_cast %one : i32 to index
        %negated = stablehlo.negate %x : tensor<6xf64>
        %part = tensor.extract_slice %negated[%index] [%length] [1] : tensor<6xf64> to tensor<?xf64>
        %slice = tensor.cast %part : tensor<?xf64> to tensor<1xf64>
        %result = scf.{branches}
        return %result : tensor<1xf64>
      }}"""
    x = np.arange(3, 9, dtype=np.float64)
    for index in (0, 2):
        (result,) = in_process.run(text, x, np.array(50.0), np.array(index, np.int32), np.array(1, np.int32))
        np.testing.assert_array_equal(result, [-x[index] if (index == 0) == is_first else -50.0])


jax = pytest.importorskip("jax")
jnp = jax.numpy
X = np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32)
INTEGERS = np.array([-9, -1, 0, 1, 8, 5], np.int32)

FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "functions": (
        lambda x: [f(x) for f in (jnp.exp, jnp.log1p, jnp.tanh, jnp.tan, jax.lax.rsqrt, jax.lax.erf, jnp.cbrt)],
        (np.abs(X),),
    ),
    "f16": (lambda x: (x @ x.T, jnp.exp(x), x.sum(0)), (X.astype(np.float16),)),
    "bf16": (lambda x: (x @ x.T, jnp.exp(x), x.sum(0)), (X.astype(jnp.bfloat16),)),
    "integers": (lambda x: (x // 3, x % 5, x << 2, x >> 1, x & 7, x.max(), jnp.argmax(x)), (INTEGERS,)),
    "unsigned": (lambda x: (x // 3, jnp.maximum(x, 7), x >> 1, x.astype(np.float32)), (INTEGERS.astype(np.uint32),)),
    "truth values": (lambda x: (x > 0, jnp.any(x > 0), jnp.where(x > 0, 1, 2)), (X,)),
    "windows": (lambda x: (jnp.pad(x, 1), x[::2, 1:], jnp.flip(x), jnp.roll(x, 1), jnp.cumsum(x)), (X,)),
    "attention": (
        lambda q, k: jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((5, 5), bool)), q @ k.T, -1e9)) @ k,
        (X, X[::-1].copy()),
    ),
    "gradient": (jax.grad(lambda w, x: (jax.nn.gelu(x @ w) ** 2).sum()), (X.T.copy(), X)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_jax(name: str) -> None:
    function, arguments = FUNCTIONS[name]
    jitted = jax.jit(function)
    module = mlir_shard.parse(jitted.lower(*arguments).as_text(), mlir_shard.create_context())
    program = compile_module(module, lower=in_process.lower_whole).unsharded
    assert program is not None
    results = run_program(program, list(arguments), in_process.Engine())
    expected = jax.tree.leaves(jitted(*arguments))
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected, strict=True):
        comparison = compare(result.array, np.asarray(wanted), result.port.spec.element_type)
        assert comparison.is_equal, f"{result.port.name}: {comparison}"


def test_padding_between_what_is_padded() -> None:
    """The host's canonicalization takes the stride of an insertion for 1 if the inserted tensor is padded."""
    text = """
      func.func @main(%x: tensor<3x4xf32>) -> tensor<4x11xf32> {
        %one = stablehlo.constant dense<1.0> : tensor<f32>
        %0 = stablehlo.pad %x, %one, low = [1, 1], high = [0, 1], interior = [0, 0]
          : (tensor<3x4xf32>, tensor<f32>) -> tensor<4x6xf32>
        %1 = stablehlo.pad %0, %one, low = [0, 0], high = [0, 0], interior = [0, 1]
          : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x11xf32>
        return %1 : tensor<4x11xf32>
      }"""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    expected = np.ones((4, 11), np.float32)
    expected[1:, 2:-2:2] = x
    np.testing.assert_array_equal(in_process.run(text, x)[0], expected)
