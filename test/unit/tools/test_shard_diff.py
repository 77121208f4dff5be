# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the exit status of shard-diff and of its output on a narrow terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlir_shard.tools.shard_diff import DIFFERENT, FAILED, SAME, main

PROGRAM = """sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(
    %x: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
    %w: tensor<128x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}) -> tensor<64x256xf32> {
  %0 = stablehlo.dot %x, %w : (tensor<64x128xf32>, tensor<128x256xf32>) -> tensor<64x256xf32>
  return %0 : tensor<64x256xf32>
}
"""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    other = PROGRAM.replace('[{}, {"model"}]', '[{"model"}, {}]')
    texts = {"program": PROGRAM, "other": other, "broken": PROGRAM.replace("stablehlo.dot", "stablehlo.dit")}
    for name, text in texts.items():
        (tmp_path / f"{name}.mlir").write_text(text)
    return {name: str(tmp_path / f"{name}.mlir") for name in texts}


def test_the_exit_status_is_that_of_diff(files: dict[str, str]) -> None:
    assert main([files["program"], files["program"]]) == SAME == 0
    assert main([files["program"], files["other"]]) == DIFFERENT == 1
    assert main([files["program"], files["other"], "--threshold", "bytes=1MB"]) == SAME
    assert main([files["program"], files["other"], "--threshold", "bytes=1MB,collectives=0"]) == DIFFERENT
    assert main([files["program"], files["broken"]]) == FAILED == 2
    assert main([files["program"], f"{files['program']}.absent"]) == FAILED
    assert main([files["program"], files["program"], "--threshold", "bytes=much"]) == FAILED


@pytest.mark.parametrize("width", [40, 60, 120])
def test_text_is_no_wider_than_it_may_be(
    files: dict[str, str], width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(files["program"]).parent)
    assert main(["program.mlir", "other.mlir", "--width", str(width)]) == DIFFERENT
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert any("+24.0 KiB" in line for line in lines) or any("48.0 KiB" in line for line in lines) or width < 60
