# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of linear algebra of JAX, by LAPACK."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from runtime import in_process

import mlir_shard
from mlir_shard.runtime import RunError
from mlir_shard.runtime.arrays import TensorSpec
from mlir_shard.runtime.compile import compile_module
from mlir_shard.runtime.execution import run_program
from mlir_shard.runtime.launch.libraries.array_calls import ArrayCall, ArrayFunctions
from mlir_shard.runtime.launch.libraries.lapack import is_known
from mlir_shard.runtime.lowering import array_calls

jax = pytest.importorskip("jax")
jnp = jax.numpy
linalg = jax.lax.linalg
Function = Callable[..., Any]

X = np.random.default_rng(0).standard_normal((2, 3, 4, 4))
TALL = np.random.default_rng(1).standard_normal((3, 5, 2))
SYMMETRIC = X @ X.swapaxes(-1, -2) + np.eye(4)


def phases_removed(vectors: Any) -> Any:
    """Removes phases, as eigenvectors and singular vectors are unique only up to a factor of magnitude 1."""
    return jnp.abs(vectors)


def singular_values(a: Any, **options: Any) -> Any:
    u, values, vt = jnp.linalg.svd(a, **options)
    return phases_removed(u), values, phases_removed(vt)


# Results whose form differs between versions of LAPACK are compared by their meaning.
FUNCTIONS: dict[str, tuple[Function, Any]] = {
    "cholesky": (jnp.linalg.cholesky, SYMMETRIC),
    "determinant": (jnp.linalg.det, X),
    "LU": (jax.scipy.linalg.lu_factor, X),
    "LU, wide": (linalg.lu, TALL.swapaxes(-1, -2)),
    "inverse": (jnp.linalg.inv, X),
    "QR": (jnp.linalg.qr, TALL),
    "QR, complete": (lambda a: jnp.linalg.qr(a, "complete"), TALL),
    "QR, pivoted": (lambda a: jax.scipy.linalg.qr(a, pivoting=True), TALL[0]),
    "multiplied by Q": (lambda a: jax.scipy.linalg.qr_multiply(a, a.mT, mode="right"), TALL[0]),
    "symmetric": (lambda a: [jnp.linalg.eigvalsh(a), phases_removed(jnp.linalg.eigh(a)[1])], SYMMETRIC),
    "upper": (lambda a: jnp.linalg.eigh(a, UPLO="U")[0], SYMMETRIC),
    "singular values": (singular_values, TALL),
    "singular values, reduced": (lambda a: singular_values(a, full_matrices=False), TALL.swapaxes(-1, -2)),
    "only singular values": (lambda a: jnp.linalg.svd(a, compute_uv=False), TALL),
    "singular values by QR": (lambda a: linalg.svd(a, algorithm=linalg.SvdAlgorithm.QR)[1], TALL),
    "eigenvalues": (lambda a: jnp.linalg.eigvals(a), X[0]),
    "eigenvectors": (lambda a: phases_removed(jnp.linalg.eig(a)[1]), X),
    "left eigenvectors": (lambda a: phases_removed(linalg.eig(a, compute_right_eigenvectors=False)[1]), X),
    "Hessenberg": (jax.scipy.linalg.hessenberg, X),
    "Schur": (lambda a: linalg.schur(a), X),
    "Schur, no vectors": (lambda a: linalg.schur(a, compute_schur_vectors=False), X),
    "tridiagonal": (lambda a: linalg.tridiagonal(a, lower=True)[:3], SYMMETRIC),
    "tridiagonal solve": (
        lambda a: linalg.tridiagonal_solve(a[..., 0].at[..., 0].set(0), a[..., 1] + 9, a[..., 2].at[..., -1].set(0), a),
        X,
    ),
    "solve": (lambda a: jnp.linalg.solve(a, a[..., :1] + 1), X),
    "triangular solve": (
        lambda a: [
            linalg.triangular_solve(a, a, left_side=left, lower=lower, transpose_a=lower, unit_diagonal=left)
            for left in (False, True)
            for lower in (False, True)
        ],
        SYMMETRIC,
    ),
    "no columns": (jnp.linalg.cholesky, np.zeros((2, 0, 0))),
    "not positive": (jnp.linalg.cholesky, -SYMMETRIC),
}
DTYPES = ("float32", "float64", "complex64", "complex128")
# Vectors of real matrices have their signs by convention, but complex vectors of LAPACK have arbitrary phases.
CASES = [
    (name, dtype) for index, name in enumerate(FUNCTIONS) for dtype in (DTYPES[index % 4], DTYPES[(index + 2) % 4])
]


def of_dtype(x: Any, dtype: str) -> Any:
    if not dtype.startswith("complex"):
        return x.astype(dtype)
    twist = 1j * np.triu(x, 1)
    return (x + twist + twist.conj().swapaxes(-1, -2) if x.shape[-1:] == x.shape[-2:-1] else x * (1 + 2j)).astype(dtype)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_functions_of_jax(name: str, dtype: str) -> None:
    function, x = FUNCTIONS[name]
    with jax.enable_x64(True):
        argument = of_dtype(x, dtype)
        jitted = jax.jit(function)
        module = mlir_shard.parse(jitted.lower(argument).as_text(), mlir_shard.create_context())
        program = compile_module(module, lower=in_process.lower_whole).unsharded
        assert program is not None
        results = run_program(program, [argument], in_process.Engine())
        expected = jax.tree.leaves(jitted(argument))
    assert len(results) == len(expected)
    tolerance = 2e-4 if dtype in ("float32", "complex64") else 1e-10
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(result.array, np.asarray(wanted), tolerance, tolerance)


def test_a_call_is_its_symbol() -> None:
    operand, result = TensorSpec((2, 3, 3), "complex<f32>"), TensorSpec((), "i32")
    call = ArrayCall("lapack_cpotrf_ffi", (("uplo", 76), ("left", 1)), (operand,), (operand, result))
    assert ArrayCall.of_symbol(call.symbol) == call
    assert list(ArrayFunctions(f'llvm.func @"{call.symbol}"(!llvm.ptr)').addresses) == [call.symbol]
    assert is_known(call.target)
    assert not is_known("lapack_cpotrx_ffi")


TEXT = """
func.func @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {mhlo.backend_config = {uplo = 76 : ui8}, api_version = 4 : i32}
    : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
  return %0#0 : tensor<2x2xf32>
}
"""


def test_without_scipy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_calls, "find_spec", lambda name: None)
    with pytest.raises(
        RunError, match=r"3:10: error: 'lapack_spotrf_ffi' needs SciPy: pip install 'mlir-shard\[run\]'"
    ):
        in_process.run(TEXT, np.eye(2, dtype=np.float32))


def test_what_goes_wrong_in_a_call_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise RunError("the call failed")

    monkeypatch.setattr(ArrayCall, "__call__", fail)
    with pytest.raises(RunError, match="the call failed"):
        in_process.run(TEXT, np.eye(2, dtype=np.float32))
