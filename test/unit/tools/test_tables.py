# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the tables of the commands on narrow terminals."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from narrow_terminal import lines_on_terminal

RESULTS = """
from mlir_shard.tools.run.report import aligned
print(aligned([("result", "type", "sharding", "max abs error", ""),
               ("0", "tensor<8x4xf32>", '<@mesh, [{"data"}, {}]>', "9.54e-07", "OK")]))
"""
PROGRAM = """
shard.grid @mesh(shape = 2x2) {mlir_shard.axis_names = ["data", "model"]}
func.func @main(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = shard.all_reduce %a on @mesh grid_axes = [1] : tensor<8x4xf32> -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""


def test_results() -> None:
    command = [sys.executable, "-c", RESULTS]
    assert lines_on_terminal(command, 80) == [
        "result  type             sharding                 max abs error",
        '0       tensor<8x4xf32>  <@mesh, [{"data"}, {}]>  9.54e-07       OK',
    ]
    assert lines_on_terminal(command, 60) == [
        "result 0",
        '  type tensor<8x4xf32>; sharding <@mesh, [{"data"}, {}]>',
        "  max abs error 9.54e-07; OK",
    ]


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_plans(columns: int) -> None:
    shardings = ('[{"x"}, {"y"}]', '[{"y"}, {"x"}]')
    command = [sys.executable, "-m", "mlir_shard.tools.shard_reshard", "--mesh=x=16,y=3", "--shape=12000x188888xf32"]
    lines = lines_on_terminal([*command, *shardings], columns)
    assert max(map(len, lines)) <= columns


def test_collectives(tmp_path: Path) -> None:
    (tmp_path / "local.mlir").write_text(PROGRAM)
    script = """
import sys
from mlir_shard.tools import shard_opt
sys.stderr = sys.stdout
sys.exit(shard_opt.main([sys.argv[1], "--shard-communication-report", "-o", "/dev/null"]))
"""
    lines = lines_on_terminal([sys.executable, "-c", script, str(tmp_path / "local.mlir")], 60)
    assert [line for line in lines if line][:2] == [
        "collective all_reduce",
        "  axes model=2; groups 2; a device receives 128 B",
    ]
    assert max(map(len, lines)) <= max(60, len(f"  at {tmp_path}/local.mlir:4:8"))
