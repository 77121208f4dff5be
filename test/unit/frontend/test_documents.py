# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python of documents, run from top to bottom."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def run(document: str, tmp_path: Path) -> str:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / f"{document}.md").read_text(), re.DOTALL)
    script = tmp_path / f"{document}.py"
    script.write_text("\n".join(blocks))
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    ended = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_from_jax(tmp_path) -> None:
    printed = run("from-jax", tmp_path)
    assert "from-jax.py:10:13" in printed
    assert "all_reduce" in printed


def test_from_torch(tmp_path) -> None:
    printed = run("from-torch", tmp_path)
    assert "'layers.0.wq.weight'" in printed
    assert '<@mesh, [{"model"}, {}]>' in printed


def test_from_python(tmp_path) -> None:
    printed = run("from-python", tmp_path)
    assert "<LocalProgram @main(x: tensor<32x16xf32>, params.w1: tensor<16x16xf32>, params.w2:" in printed
    assert "no plan of these moves is cheaper" in printed


def test_diff(tmp_path) -> None:
    printed = run("diff", tmp_path)
    assert "1 annotation changed" in printed
    assert "True ['[{\"model\"}, {}]'] " in printed


def test_user_dialects(tmp_path) -> None:
    printed = run("user-dialects", tmp_path)
    assert (
        '"attn.scores"(%arg3, %arg1) : (tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>) -> tensor<2x2x8x8xf32>' in printed
    )
    assert "attn.constant" in printed
    assert "all_slice" not in printed
    assert "all_gather" not in printed
