# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the API that `import mlir_shard` provides."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hang_guard import SECONDS

import mlir_shard

TEXT = """\
sdy.mesh @mesh = <["x"=2]>
func.func @f(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"x"}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def test_every_name_is_there() -> None:
    assert [name for name in mlir_shard.__all__ if getattr(mlir_shard, name) is None] == []
    assert set(mlir_shard.__all__) <= set(dir(mlir_shard))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = mlir_shard.nothing


def test_parse_run_print() -> None:
    class Rename(mlir_shard.Pass):
        name = "rename-function"
        anchor = "func.func"
        to: str = mlir_shard.option("g", "the new name")

        def run(self, op: Any) -> None:
            op.attributes["sym_name"] = type(op.attributes["sym_name"]).get(self.to)

    mlir_shard.register(Rename)
    module = mlir_shard.parse(TEXT, mlir_shard.create_context())
    mlir_shard.run(module, [Rename(to="h")])
    mlir_shard.run(module, "builtin.module(cse,func.func(rename-function{to=k},canonicalize))")
    printed = mlir_shard.print_module(module)
    assert "func.func @k" in printed
    assert 'sdy.reshard %arg0 <@mesh, [{"x"}]> : tensor<4xf32>' in printed


def test_the_passes_of_the_project_are_known() -> None:
    module = mlir_shard.parse(TEXT, mlir_shard.create_context())
    mlir_shard.run(module, "builtin.module(sdy-basic-propagate)")


def test_importing_costs_nothing() -> None:
    code = "import sys; import mlir_shard; print(sorted(name for name in sys.modules if name.startswith('mlir_shard')))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS, check=True)
    assert result.stdout.strip() == "['mlir_shard']"
