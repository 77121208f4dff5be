# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of scalars and tokens as arguments and results of programs that are run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from runtime.launch.test_shard_run_command import shard_run
from runtime.local_program import needs_mpich
from runtime.test_interface import parse

from mlir_shard.runtime import interface
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.execution import execute

PROGRAM = """
sdy.mesh @m = <["a"=2]>
func.func @main(%t: !stablehlo.token, %f: f32, %n: index,
                %x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>})
    -> (f32, !stablehlo.token, index, tensor<4xf32>) {
  %0 = arith.addf %f, %f : f32
  %1 = arith.addi %n, %n : index
  %2 = tensor.from_elements %0 : tensor<f32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %4 = stablehlo.multiply %x, %3 : tensor<4xf32>
  %5 = stablehlo.after_all %t : !stablehlo.token
  return %0, %5, %1, %4 : f32, !stablehlo.token, index, tensor<4xf32>
}
"""


@needs_mpich
def test_scalars_are_arrays_of_rank_0() -> None:
    x = np.arange(4, dtype=np.float32)
    doubled, count, scaled = execute(parse(PROGRAM), [np.float32(1.5), np.int64(7), x])
    assert (doubled.shape, doubled.dtype, doubled) == ((), np.float32, 3.0)
    assert (count.shape, count.dtype, count) == ((), np.int64, 14)
    np.testing.assert_array_equal(scaled, 3 * x)


@needs_mpich
def test_scalars_in_files(tmp_path: Path) -> None:
    (tmp_path / "program.mlir").write_text(PROGRAM)
    np.save(tmp_path / "f.npy", np.float32(1.5))
    np.save(tmp_path / "n.npy", np.int64(7))
    np.save(tmp_path / "x.npy", np.ones(4, np.float32))
    ended = shard_run("program.mlir", "--inputs", "f.npy", "n.npy", "x.npy", "-o", "out.npz", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    with np.load(tmp_path / "out.npz") as saved:
        assert [array.shape for array in saved.values()] == [(), (), (4,)]
        assert saved["result1"] == 14
    ended = shard_run("program.mlir", "--inputs", "x.npy", "n.npy", "x.npy", cwd=tmp_path)
    assert ended.returncode == 1
    assert "argument 1 of the program is f32, but the given array has shape 4" in ended.stderr


@pytest.mark.parametrize("type_", ["memref<4xf32>", "vector<4xf32>", "tuple<f32>"])
def test_other_types_do_not_cross(type_: str) -> None:
    module = parse(f"func.func @main(%a: {type_}) {{\n  return\n}}")
    with pytest.raises(RunError, match="expected a tensor of static shape, a scalar or a token"):
        interface.ports(interface.entry_function(module, "main"), 1)


def test_what_calls_the_function_goes() -> None:
    module = parse("""
      func.func @main(%f: f32) -> f32 {
        %0 = call @middle(%f) : (f32) -> f32
        return %0 : f32
      }
      func.func @middle(%f: f32) -> f32 {
        %0 = call @inner(%f) : (f32) -> f32
        return %0 : f32
      }
      func.func @inner(%f: f32) -> f32 {
        return %f : f32
      }
      func.func @other() { return }""")
    interface.cross_as_tensors(module, interface.entry_function(module, "inner"))
    assert module.operation.verify()
    names = [op.attributes["sym_name"].value for op in module.body.operations]
    assert names == ["inner", "other"]
    assert str(module.body.operations[0].attributes["function_type"]) == "(tensor<f32>) -> tensor<f32>"
