# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of modules that are imported at their first use, among them the NumPy of the bindings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

from mlir_shard.deferred import Deferred

USES_NUMPY_LATE = """
import sys
from mlir_shard.host import ir, PREFIX
assert "numpy" not in sys.modules, "the bindings import NumPy"
with ir.Context(), ir.Location.unknown():
    build = ir.AttrBuilder.get("F64ElementsAttr")
    print(build([1.5, 2.5], context=ir.Context.current))
import numpy
assert sys.modules[f"{PREFIX}.ir"].np.float64 is numpy.float64
assert type(numpy).__name__ == "module"
"""


def test_a_module_is_loaded_once_at_the_first_use() -> None:
    loads = []

    def load() -> ModuleType:
        loads.append("")
        module = ModuleType("real")
        module.__dict__.update(a=1, b=2)
        return module

    deferred = Deferred("later", load)
    assert not loads
    assert (deferred.a, deferred.a, deferred.a) == (1, 1, 1)
    assert len(loads) == 1
    assert "b" in dir(deferred)


def test_the_bindings_build_attributes_from_arrays_without_having_imported_numpy_first() -> None:
    done = subprocess.run([sys.executable, "-c", USES_NUMPY_LATE], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == "dense<[1.500000e+00, 2.500000e+00]> : tensor<2xf64>\n"


def test_a_small_program_is_partitioned_without_numpy(tmp_path: Path) -> None:
    program = tmp_path / "program.mlir"
    program.write_text("""
        sdy.mesh @mesh = <["x"=2]>
        func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
          %0 = stablehlo.add %a, %a : tensor<8x4xf32>
          return %0 : tensor<8x4xf32>
        }
    """)
    run = "import sys; from mlir_shard.tools.shard_opt import main; main(sys.argv[1:]); print('numpy' in sys.modules)"
    command = [sys.executable, "-c", run, str(program), "--spmd-pipeline"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "tensor<4x4xf32>" in done.stdout
    assert done.stdout.splitlines()[-1] == "False"
