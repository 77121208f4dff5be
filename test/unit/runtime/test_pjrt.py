# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of local StableHLO programs on devices of PJRT, and of global programs by that engine."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from default_signals import default_signals
from hang_guard import SECONDS, files_below, wait_until
from runtime.local_program import needs_jax, port, spec

import mlir_shard
from mlir_shard.runtime import RunError, execute
from mlir_shard.runtime.arrays import Array, TensorSpec, storage_dtype
from mlir_shard.runtime.pjrt import xla_module
from mlir_shard.runtime.pjrt.engine import PjrtEngine
from mlir_shard.runtime.program import Port, Program
from mlir_shard.sharding.layout import Box

DEVICES = 4
PAIRS = "replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>"
# Attributes for groups of partitions, of replicas, and of devices numbered through both.
MODES = {
    "partitions": ", channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>",
    "replicas": "",
    "devices": ", channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>, use_global_device_ids",
}
ADD = """({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
})"""


def run_local(argument: str, body: str, result: str, inputs: Array) -> Array:
    """Returns the result of each device for its input: `body` computes `%0` from `%a`."""

    def expanded(type_: str) -> str:
        return f"tensor<1x{type_}>"

    text = f"""
    func.func @local(%in: {expanded(argument)}) -> {expanded(result)} {{
      %a = stablehlo.reshape %in : ({expanded(argument)}) -> tensor<{argument}>
      {body}
      %out = stablehlo.reshape %0 : (tensor<{result}>) -> {expanded(result)}
      return %out : {expanded(result)}
    }}
    func.func @main() {{
      return
    }}
    """
    (lowered,) = xla_module.lower([text], "local")
    ports = port("argument 0", spec(argument), DEVICES), port("result 0", spec(result), DEVICES)
    program = Program(lowered, "local", (ports[0],), (ports[1],), DEVICES)
    returned = PjrtEngine(SECONDS).run(program, [inputs])
    return np.concatenate([of_device[0] for of_device in returned])


def blocks(*shape: int) -> Array:
    return np.arange(DEVICES * np.prod(shape), dtype=np.float32).reshape(DEVICES, *shape)


@needs_jax
@pytest.mark.parametrize("mode", MODES)
def test_all_reduce(mode: str) -> None:
    a = blocks(2, 3)
    body = f'%0 = "stablehlo.all_reduce"(%a) {ADD} {{{PAIRS}{MODES[mode]}}} : (tensor<2x3xf32>) -> tensor<2x3xf32>'
    sums = a.reshape(2, 2, 2, 3).sum(axis=0)
    np.testing.assert_array_equal(run_local("2x3xf32", body, "2x3xf32", a), np.concatenate([sums, sums]))


@needs_jax
@pytest.mark.parametrize("mode", MODES)
def test_all_gather(mode: str) -> None:
    a = blocks(2, 3)
    attributes = f"{{all_gather_dim = 1 : i64, {PAIRS}{MODES[mode]}}}"
    body = f'%0 = "stablehlo.all_gather"(%a) {attributes} : (tensor<2x3xf32>) -> tensor<2x6xf32>'
    gathered = [np.concatenate([a[first], a[first + 2]], axis=1) for first in (0, 1)]
    np.testing.assert_array_equal(run_local("2x3xf32", body, "2x6xf32", a), np.stack([*gathered, *gathered]))


@needs_jax
@pytest.mark.parametrize("mode", MODES)
def test_reduce_scatter(mode: str) -> None:
    a = blocks(2, 3)
    attributes = f"{{scatter_dimension = 0 : i64, {PAIRS}{MODES[mode]}}}"
    body = f'%0 = "stablehlo.reduce_scatter"(%a) {ADD} {attributes} : (tensor<2x3xf32>) -> tensor<1x3xf32>'
    sums = a.reshape(2, 2, 2, 3).sum(axis=0)
    expected = np.stack([sums[0, :1], sums[1, :1], sums[0, 1:], sums[1, 1:]])
    np.testing.assert_array_equal(run_local("2x3xf32", body, "1x3xf32", a), expected)


@needs_jax
@pytest.mark.parametrize("mode", ["partitions", "replicas"])
def test_all_to_all(mode: str) -> None:
    a = blocks(2, 3)
    attributes = (
        f"{{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, {PAIRS}{MODES[mode]}}}"
    )
    body = f'%0 = "stablehlo.all_to_all"(%a) {attributes} : (tensor<2x3xf32>) -> tensor<1x6xf32>'
    expected = [
        np.concatenate([a[first][part : part + 1], a[first + 2][part : part + 1]], axis=1)
        for part in (0, 1)
        for first in (0, 1)
    ]
    np.testing.assert_array_equal(run_local("2x3xf32", body, "1x6xf32", a), np.stack(expected))


@needs_jax
@pytest.mark.parametrize("mode", ["partitions", "replicas"])
def test_collective_permute(mode: str) -> None:
    a = blocks(3)
    pairs = "source_target_pairs = dense<[[0, 1], [1, 2], [3, 0]]> : tensor<3x2xi64>"
    body = f'%0 = "stablehlo.collective_permute"(%a) {{{pairs}{MODES[mode]}}} : (tensor<3xf32>) -> tensor<3xf32>'
    expected = np.stack([a[3], a[0], a[1], np.zeros(3)])
    np.testing.assert_array_equal(run_local("3xf32", body, "3xf32", a), expected)


@needs_jax
@pytest.mark.parametrize("number", ["partition_id", "replica_id"])
def test_devices_are_numbered(number: str) -> None:
    body = f"%n = stablehlo.{number} : tensor<ui32> %0 = stablehlo.reshape %n : (tensor<ui32>) -> tensor<1xui32>"
    np.testing.assert_array_equal(run_local("1xf32", body, "1xui32", blocks(1))[:, 0], np.arange(DEVICES))


@needs_jax
@pytest.mark.parametrize("element_type", ["f64", "f16", "bf16", "i1", "i8", "ui16", "i64", "ui64", "complex<f64>"])
def test_element_types_are_kept(element_type: str) -> None:
    stored = np.arange(2 * DEVICES).reshape(DEVICES, 2).astype(storage_dtype(element_type))
    body = f"%0 = stablehlo.optimization_barrier %a : tensor<2x{element_type}>"
    returned = run_local(f"2x{element_type}", body, f"2x{element_type}", stored)
    assert returned.dtype == stored.dtype
    np.testing.assert_array_equal(returned, stored)


PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<ROWSx16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %b: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>})
    -> (tensor<ROWSx4xf32>, tensor<4xf32>) {
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<ROWSx16xf32>, tensor<16x4xf32>) -> tensor<ROWSx4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %d = stablehlo.reduce(%c init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<ROWSx4xf32>, tensor<f32>) -> tensor<4xf32>
  return %c, %d : tensor<ROWSx4xf32>, tensor<4xf32>
}
"""


@needs_jax
@pytest.mark.parametrize("rows", [8, 7])
def test_a_program_is_sharded_and_run(rows: int) -> None:
    module = mlir_shard.parse(PROGRAM.replace("ROWS", str(rows)), mlir_shard.create_context())
    generator = np.random.default_rng(0)
    a, b = (generator.standard_normal(shape).astype(np.float32) for shape in [(rows, 16), (16, 4)])
    product, sums = execute(module, [a, b], engine="pjrt")
    np.testing.assert_allclose(product, a @ b, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(sums, (a @ b).sum(axis=0), rtol=1e-5, atol=1e-5)


@needs_jax
def test_custom_calls_of_jax_with_their_own_sharding_rules() -> None:
    """The rule shares no factors between operand and results; XLA calls LAPACK's functions, which must be found."""
    layouts = (
        "operand_layouts = [dense<[0, 1]> : tensor<2xindex>], "
        "result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]"
    )
    call = (
        "%r:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {mhlo.backend_config = {uplo = 76 : ui8}, "
        f"{layouts}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], []) {{i=4, j=4, k=4, l=4}}, custom>"
        "} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<i32>)"
    )
    text = (
        'sdy.mesh @mesh = <["x"=2]> func.func @main('
        '%a: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x4xf32> {'
        f"{call} return %r#0 : tensor<4x4xf32> }}"
    )
    positive = np.eye(4, dtype=np.float32) * 4 + 1
    (factor,) = execute(mlir_shard.parse(text, mlir_shard.create_context()), [positive], engine="pjrt")
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(positive), rtol=1e-5)


@needs_jax
def test_operations_of_chlo_and_composites() -> None:
    text = """
    sdy.mesh @mesh = <["x"=4]>
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
      %0 = chlo.square %a : tensor<8xf32> -> tensor<8xf32>
      %1 = stablehlo.composite "my.negated" %0 {decomposition = @negated} : (tensor<8xf32>) -> tensor<8xf32>
      return %1 : tensor<8xf32>
    }
    func.func private @negated(%a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.negate %a : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    """
    module = mlir_shard.parse(text, mlir_shard.create_context())
    given = np.arange(8, dtype=np.float32)
    (result,) = execute(module, [given], engine="pjrt")
    np.testing.assert_allclose(result, -given * given)


@needs_jax
def test_a_fourier_transform_of_columns_that_are_gathered() -> None:
    """XLA's layout assignment would choose a column-major layout, which ends the run."""
    text = """
    sdy.mesh @mesh = <["x"=3]>
    func.func @main(%a: tensor<10x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<10x4xf32> {
      %b = stablehlo.complex %a, %a : tensor<10x4xcomplex<f32>>
      %c = stablehlo.fft %b, type = FFT, length = [4] : (tensor<10x4xcomplex<f32>>) -> tensor<10x4xcomplex<f32>>
      %d = stablehlo.imag %c : (tensor<10x4xcomplex<f32>>) -> tensor<10x4xf32>
      return %d : tensor<10x4xf32>
    }"""
    value = np.random.default_rng(0).standard_normal((10, 4)).astype(np.float32)
    (found,) = execute(mlir_shard.parse(text, mlir_shard.create_context()), [value], engine="pjrt")
    np.testing.assert_allclose(found, np.fft.fft(value * (1 + 1j)).imag, rtol=1e-5, atol=1e-5)


SLICED = "stablehlo.dynamic_slice"
AT = "%{}, sizes = [{}] : (tensor<{}xi32>, tensor<i32>) -> tensor<{}xi32>"
SET = """"stablehlo.scatter"(%0, %place, %value) <{{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>}}> ({{
      ^bb0(%old: tensor<i32>, %new: tensor<i32>):
        stablehlo.return %new : tensor<i32>
      }}) : (tensor<{0}xi32>, tensor<1xi32>, tensor<i32>) -> tensor<{0}xi32>"""
GATHER = """"stablehlo.gather"(%0, %place) <{{dimension_numbers = #stablehlo.gather<
      offset_dims = [0], start_index_map = [0]>, slice_sizes = array<i64: {}>}}>
      : (tensor<{}xi32>, tensor<1xi32>) -> tensor<{}xi32>"""
NESTED = {
    "slice": (f"{SLICED} %0, {AT.format('second', 1, 2, 1)}", lambda cut, second: cut[min(max(second, 0), 1) :][:1]),
    "gather": (GATHER.format(1, 2, 1), lambda cut, second: cut[min(max(second, 0), 1) :][:1]),
    "scatter": (SET.format(2), lambda cut, second: np.where(np.arange(2) == second, -1, cut)),
}


@pytest.mark.parametrize("inner", NESTED)
@pytest.mark.parametrize(("first", "second"), [(0, 15), (15, 0), (3, -7), (-1, 1), (4, 1)])
def test_slices_of_slices_are_clamped_each(inner: str, first: int, second: int) -> None:
    op, exact = NESTED[inner]
    text = f"""func.func @main(%x: tensor<16xi32>, %first: tensor<i32>, %second: tensor<i32>, %value: tensor<i32>)
        -> tensor<{1 if inner != "scatter" else 2}xi32> {{
      %place = stablehlo.reshape %second : (tensor<i32>) -> tensor<1xi32>
      %0 = {SLICED} %x, {AT.format("first", 2, 16, 2)}
      %1 = {op}
      return %1 : tensor<{1 if inner != "scatter" else 2}xi32>
    }}"""
    x = np.arange(16, dtype=np.int32)
    arguments = [x, *(np.array(one, np.int32) for one in (first, second, -1))]
    (got,) = execute(mlir_shard.parse(text), arguments, 1, engine="pjrt")
    start = min(max(first, 0), 14)
    np.testing.assert_array_equal(got, exact(x[start : start + 2], second))


def test_an_engine_that_is_none() -> None:
    module = mlir_shard.parse(PROGRAM.replace("ROWS", "8"), mlir_shard.create_context())
    with pytest.raises(RunError, match="unknown engine 'tpu': choose mpi or pjrt"):
        execute(module, [], engine="tpu")


def test_other_operations_are_named() -> None:
    text = """func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
      %0 = math.exp %a : tensor<2xf32>
      %1 = math.exp %0 : tensor<2xf32>
      %2 = arith.addf %1, %0 : tensor<2xf32>
      return %2 : tensor<2xf32>
    }"""
    with pytest.raises(RunError, match=r"has ops outside of StableHLO, .*; --engine=mpi may run it") as raised:
        xla_module.lower([text], "main")
    assert [one.message for one in raised.value.diagnostics] == ["'math.exp' cannot be run by PJRT, nor can arith.addf"]


@needs_jax
def test_what_xla_cannot_compile_is_an_error() -> None:
    text = """
    func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @there_is_no_such_target(%a) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }"""
    module = mlir_shard.parse(text, mlir_shard.create_context())
    with pytest.raises(RunError, match=r"XLA cannot (compile|run) the program: .*there_is_no_such_target"):
        execute(module, [np.zeros(2, np.float32)], engine="pjrt")


@needs_jax
def test_a_platform_that_is_not_there() -> None:
    (lowered,) = xla_module.lower(["func.func @main() { return }"], "main")
    with pytest.raises(RunError, match="PJRT has no platform 'nothing'"):
        PjrtEngine(SECONDS, "nothing").run(Program(lowered, "main", (), (), 1), [])


LOOP = """
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.while(%x = %a) : tensor<4xf32>
    cond { %true = stablehlo.constant dense<true> : tensor<i1> stablehlo.return %true : tensor<i1> }
    do { %y = stablehlo.sine %x : tensor<4xf32> stablehlo.return %y : tensor<4xf32> }
  return %0 : tensor<4xf32>
}
"""


@needs_jax
def test_a_run_that_does_not_end_is_stopped() -> None:
    (lowered,) = xla_module.lower([LOOP], "main")
    type_ = TensorSpec((4,), "f32")
    one = Port("argument 0", type_, type_, (Box((0,), (4,)),))
    with pytest.raises(RunError, match="stopped after 3 s"):
        PjrtEngine(3).run(Program(lowered, "main", (one,), (one,), 1), [np.zeros(4, np.float32)])


@needs_jax
def test_a_process_killed_from_outside(tmp_path: Path) -> None:
    (tmp_path / "loop.mlir").write_text(LOOP)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with default_signals():
        process = subprocess.Popen(
            [sys.executable, "-m", "mlir_shard.tools.shard_run", "--engine=pjrt", "--no-verify", "loop.mlir"],
            env={**os.environ, "TMPDIR": str(temporary)},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    wait_until(lambda: bool(files_below(temporary, "rank.0.pids")))
    (found,) = files_below(temporary, "rank.0.pids")
    child, _ = pickle.loads(found.read_bytes())
    os.kill(child, signal.SIGKILL)
    written, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, written) == (1, "")
    assert errors.endswith("shard-run: error: the program was killed by SIGKILL (Killed); it had no output\n")
    assert list(temporary.iterdir()) == []


def test_without_jax_the_error_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "loop.mlir").write_text(LOOP)
    script = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "jax" else found(name, package)
from mlir_shard.tools.shard_run import main
sys.exit(main(["--engine=pjrt", "loop.mlir"]))
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS
    )
    assert ended.returncode == 1
    assert ended.stderr == (
        "shard-run: error: the package jax, which provides PJRT, is not installed: pip install jax\n"
    )
