# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of installations of MPI other than the wheel's, and of Open MPI if the machine has it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hang_guard import SECONDS
from runtime.launchers import open_mpi
from runtime.local_program import needs_mpich

from mlir_shard.runtime import RunError
from mlir_shard.runtime.backends import backend
from mlir_shard.runtime.launch import mpi
from mlir_shard.runtime.launch.mpi import MpiInstallation
from mlir_shard.runtime.launch.mpi_library import MPICH, OPEN_MPI

FAILING = Path(__file__).resolve().parents[3] / "tools" / "shard-run" / "Inputs" / "fail_on_rank.py"

PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4x6xi16> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<4xi16> {sdy.sharding = #sdy.sharding<@mesh, [{}]>},
        tensor<4x6xi16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  %zero = stablehlo.constant dense<0> : tensor<i16>
  %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<4x6xi16>, tensor<i16>) -> tensor<4xi16>
  return %0, %a : tensor<4xi16>, tensor<4x6xi16>
}
"""


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
    with pytest.raises(RunError, match="neither mpiexec nor mpirun is on the path"):
        backend("mpi", mpi="system")


def test_a_launcher_of_something_else(tmp_path: Path) -> None:
    launcher = fake_launcher(tmp_path / "bin", "make 4.3")
    with pytest.raises(RunError, match="does not belong to a known MPI"):
        MpiInstallation.find(launcher)


@needs_mpich
def test_a_launcher_that_speaks_pmix_alone_is_none_of_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi, "_LIBRARIES", {OPEN_MPI: ("libabsent.so",), MPICH: ("libabsent.so",)})
    monkeypatch.setenv("PMIX_RANK", "0")
    monkeypatch.delenv("OMPI_COMM_WORLD_RANK", raising=False)
    monkeypatch.delenv("PMI_RANK", raising=False)
    with pytest.raises(RunError, match="cannot find the MPI library of the launcher: specify the MPI"):
        mpi.site_library()
    monkeypatch.setenv("PMI_RANK", "0")
    assert mpi.site_library() == MpiInstallation.find().library


def shard_run(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs a program on ranks of Open MPI whose files are in `folder`."""
    command = [sys.executable, "-m", "mlir_shard.tools.shard_run", "program.mlir", "--mpi", open_mpi(), *arguments]
    files = {"TMPDIR": str(folder / "files"), "OMPI_MCA_btl_vader_backing_directory": str(folder / "files")}
    (folder / "files").mkdir()
    (folder / "program.mlir").write_text(PROGRAM)
    return subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env={**os.environ, **files},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def test_ranks_of_open_mpi(tmp_path: Path) -> None:
    a = np.arange(24, dtype=np.int16).reshape(4, 6)
    np.save(tmp_path / "a.npy", a)
    ended = shard_run(tmp_path, "--inputs", "a.npy", "--save", "out.npz", "--timing")
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert [line.endswith("OK") for line in lines[2:4]] == [True, True]
    assert [line.split()[0] for line in lines[5:]] == ["rank", "0", "1", "2", "3"]
    with np.load(tmp_path / "out.npz") as saved:
        np.testing.assert_array_equal(saved["result0"], a.sum(axis=1).astype(a.dtype))
        np.testing.assert_array_equal(saved["result1"], a)


def test_a_rank_of_open_mpi_that_fails(tmp_path: Path) -> None:
    pipelines = "shard-propagate;shard-spmdize,fail-on-rank{rank=1 how=assert}"
    ended = shard_run(tmp_path, "--load", FAILING, "--pipeline", pipelines)
    assert ended.returncode == 1
    said = (
        "shard-run: error: rank 1 of 4 was killed by SIGABRT (Aborted); its last output:\n"
        "  program.mlir: error: the assertion 'this rank is not to be' failed\n"
        "  the arguments are random: --inputs and --seed select others\n"
    )
    assert ended.stderr == said
    assert not [path for path in (tmp_path / "files").rglob("*") if not path.is_dir()]
