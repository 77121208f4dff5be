# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python of docs/from-jax.md, run from top to bottom."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_from_jax(tmp_path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "from-jax.md").read_text(), re.DOTALL)
    script = tmp_path / "from_jax.py"
    script.write_text("\n".join(blocks))
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    ended = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "from_jax.py:10:13" in ended.stdout
    assert "all_reduce" in ended.stdout
