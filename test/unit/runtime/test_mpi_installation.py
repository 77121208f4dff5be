# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Installations of MPI other than the wheel's, and Open MPI in particular where the machine has it."""

from __future__ import annotations

import importlib.metadata
import shutil
from pathlib import Path

import numpy as np
import pytest
from runtime.local_program import needs_mpich

import mlir_shard
from mlir_shard.runtime import RunError, execute
from mlir_shard.runtime.backends import backend
from mlir_shard.runtime.mpi_installation import MPICH, OPEN_MPI, MpiInstallation

PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4x6xTYPE> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<4xTYPE> {sdy.sharding = #sdy.sharding<@mesh, [{}]>},
        tensor<4x6xTYPE> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  %zero = stablehlo.constant dense<0> : tensor<TYPE>
  %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<4x6xTYPE>, tensor<TYPE>) -> tensor<4xTYPE>
  return %0, %a : tensor<4xTYPE>, tensor<4x6xTYPE>
}
"""


def open_mpi() -> str | None:
    """A launcher of Open MPI: of its package for Python, or of the system."""
    try:
        files = importlib.metadata.distribution("openmpi").files or []
        packaged = [str(file.locate().resolve()) for file in files if file.name == "mpiexec"]
    except importlib.metadata.PackageNotFoundError:
        packaged = []
    for launcher in [*packaged, *filter(None, map(shutil.which, ("mpirun.openmpi", "mpirun", "mpiexec")))]:
        try:
            if MpiInstallation.find(launcher).implementation == OPEN_MPI:
                return launcher
        except RunError:
            continue
    return None


def fake_launcher(folder: Path, says: str) -> str:
    folder.mkdir(parents=True)
    path = folder / "mpiexec"
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return str(path)


@needs_mpich
def test_a_launcher_by_its_path() -> None:
    wheel = MpiInstallation.find()
    assert MpiInstallation.find(str(wheel.launcher)) == wheel
    assert wheel.implementation == MPICH


@needs_mpich
def test_what_is_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = MpiInstallation.find()
    MpiInstallation.find.cache_clear()
    monkeypatch.setenv("PATH", str(wheel.launcher.parent))
    assert MpiInstallation.find("system") == wheel
    MpiInstallation.find.cache_clear()


def test_nothing_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MpiInstallation.find.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunError, match="there is no mpiexec and no mpirun on the path"):
        backend("mpi", mpi="system")


def test_a_launcher_of_something_else(tmp_path: Path) -> None:
    launcher = fake_launcher(tmp_path / "bin", "make 4.3")
    with pytest.raises(RunError, match="is the launcher of no MPI that is known"):
        MpiInstallation.find(launcher)


@needs_mpich
@pytest.mark.parametrize("element_type", ["f32", "f64", "i8", "i32"])
def test_programs_run_with_open_mpi(element_type: str) -> None:
    launcher = open_mpi()
    if launcher is None:
        pytest.skip("there is no Open MPI")
    text = PROGRAM.replace("TYPE", element_type)
    if element_type.startswith("f"):
        text = text.replace("dense<0>", "dense<0.0>")
    module = mlir_shard.parse(text, mlir_shard.create_context())
    a = np.arange(24).reshape(4, 6).astype({"f": "float", "i": "int"}[element_type[0]] + element_type[1:])
    sums, moved = execute(module, [a], engine=backend("mpi", mpi=launcher, timeout=120))
    np.testing.assert_array_equal(sums, a.sum(axis=1).astype(a.dtype))
    np.testing.assert_array_equal(moved, a)
