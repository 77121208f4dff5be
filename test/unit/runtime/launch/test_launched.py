# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of shard-run and of scripts that a launcher has started on every rank."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from fork_server import ForkServer
from hang_guard import SECONDS, wait_until
from runtime.launchers import launcher, open_mpi, srun
from runtime.local_program import needs_mpich

from mlir_shard.runtime.launch.launcher_place import Place, is_by_srun_alone, place

pytestmark = needs_mpich

COMMAND = [sys.executable, "-m", "mlir_shard.tools.shard_run"]
FAILING = Path(__file__).resolve().parents[3] / "tools" / "shard-run" / "Inputs" / "fail_on_rank.py"

PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<3xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<4x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
"""


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"PMI_RANK": "1", "PMI_SIZE": "4"}, Place(1, 4)),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, Place(0, 2)),
        ({"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "8", "SLURM_NTASKS": "8"}, Place(3, 8)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, None),
        ({"PMI_RANK": "1"}, None),
        ({"PMI_RANK": "", "PMI_SIZE": "x"}, None),
    ],
)
def test_what_launchers_say(environment: Mapping[str, str], expected: Place | None) -> None:
    assert place(environment) == expected


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"SLURM_PROCID": "0"}, True),
        ({"SLURM_PROCID": "0", "PMI_RANK": "0"}, False),
        ({"SLURM_PROCID": "0", "PMIX_RANK": "0"}, False),
        ({"PMI_RANK": "0"}, False),
    ],
)
def test_srun_without_a_process_manager(environment: Mapping[str, str], expected: bool) -> None:
    assert is_by_srun_alone(environment) == expected


@pytest.fixture
def forked(fork_server: ForkServer) -> list[str]:
    """Returns `COMMAND` run in forks: a started rank is a client, which relays the output of its fork."""
    return fork_server.command("mlir_shard.tools.shard_run")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder with `program.mlir` for 4 ranks and `small.mlir` for 2 ranks."""
    (tmp_path / "program.mlir").write_text(PROGRAM)
    (tmp_path / "small.mlir").write_text(PROGRAM.replace('"y"=2', '"y"=1'))
    return tmp_path


def launch(ranks: int, *command: object, cwd: Path, by: str = "mpich") -> subprocess.CompletedProcess[str]:
    return launcher(by, ranks).run(*command, cwd=cwd, environment=marked(cwd))


@pytest.mark.parametrize("by", ["mpich", "openmpi", "slurm", "pmix"])
def test_one_rank_speaks_for_all(folder: Path, by: str) -> None:
    a = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.save(folder / "a.npy", a)
    arguments = ["program.mlir", "--inputs", "a.npy", "-o", "out.npz", "--timing"]
    ended = launch(4, *COMMAND, *arguments, cwd=folder, by=by)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[0] == "@main on 4 ranks, compared with it on one, without sharding:"
    assert lines[2].endswith("OK")
    assert [line.split()[0] for line in lines[4:]] == ["rank", "0", "1", "2", "3"]
    with np.load(folder / "out.npz") as saved:
        np.testing.assert_array_equal(saved["result0"], a.sum(axis=0))


def test_the_module_is_shown_once(folder: Path, forked: list[str]) -> None:
    ended = launch(4, *forked, "program.mlir", "--show=local", "--no-verify", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("// The local program") == 1


@pytest.mark.parametrize(
    ("ranks", "arguments", "complaint"),
    [
        (2, ["program.mlir"], "the program is for 4 ranks, but the launcher has started 2"),
        (2, ["program.mlir", "-n", "2"], "the program is for 4 ranks, not 2: its mesh is @mesh of 4"),
        (2, ["absent.mlir"], "cannot open input file 'absent.mlir': No such file or directory"),
        (2, ["program.mlir", "--seed", "x"], "argument --seed: 'x' is not a seed: expected a non-negative integer"),
        (
            2,
            ["program.mlir", "--engine", "pjrt"],
            "--engine=pjrt runs all devices in one process: start shard-run without a launcher",
        ),
        (4, ["program.mlir", "-o", "absent/out.npz"], "cannot open output file 'absent/out.npz'"),
    ],
)
def test_what_is_wrong_is_said_once(
    folder: Path, forked: list[str], ranks: int, arguments: list[str], complaint: str
) -> None:
    ended = launch(ranks, *forked, *arguments, cwd=folder)
    assert ended.returncode != 0
    assert (ended.stdout + ended.stderr).count("shard-run: error:") == 1
    assert f"shard-run: error: {complaint}" in ended.stderr


def test_an_input_that_one_rank_lacks(folder: Path) -> None:
    np.save(folder / "a.npy", np.zeros((4, 3), np.float32))
    script = folder / "run.py"
    script.write_text(
        textwrap.dedent("""
            import os, sys
            from mlir_shard.tools.shard_run import main
            name = "absent.npy" if os.environ["PMI_RANK"] == "2" else "a.npy"
            sys.exit(main(["program.mlir", "--inputs", name]))
        """)
    )
    ended = launch(4, sys.executable, script, cwd=folder)
    assert ended.returncode != 0
    assert ended.stderr.count("shard-run: error: cannot read 'absent.npy'") == 1


@pytest.mark.parametrize(
    ("by", "how"),
    [*(("mpich", how) for how in ("kill", "abort", "exit", "symbol")), ("openmpi", "kill"), ("slurm", "kill")],
)
def test_all_end_with_one(folder: Path, by: str, how: str) -> None:
    pipelines = f"shard-propagate;shard-spmdize,fail-on-rank{{rank=1 how={how}}}"
    ended = launch(2, *COMMAND, "small.mlir", "--load", FAILING, "--pipeline", pipelines, cwd=folder, by=by)
    assert ended.returncode != 0 or how == "exit"
    assert "OK" not in ended.stdout
    assert "Traceback" not in ended.stderr
    assert ("there_is_no_such_function" in ended.stderr) == (how == "symbol")
    wait_until(lambda: not marked_processes(folder))


def test_no_shared_memory_is_left(folder: Path) -> None:
    script = folder / "die.py"
    script.write_text(
        textwrap.dedent("""
            import os, signal
            from mlir_shard.runtime.launch import launched
            process = launched.join()
            with open("/proc/self/maps") as maps:
                names = {line.split(maxsplit=5)[5] for line in maps if "/dev/shm/mpich_shm_" in line}
            with open(f"{process.rank}.names", "w") as written:
                written.writelines(names)
            process.barrier()
            if process.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            process.barrier()
        """)
    )
    assert launch(3, sys.executable, script, cwd=folder).returncode != 0
    names = {
        line.removesuffix(" (deleted)") for path in folder.glob("*.names") for line in path.read_text().split("\n")
    }
    paths = [Path(name) for name in names if name]
    assert paths
    assert not any(path.exists() for path in paths)


def test_a_rank_that_hangs_is_given_up(folder: Path) -> None:
    pipelines = "shard-propagate;shard-spmdize,fail-on-rank{rank=1 how=hang}"
    arguments = ["program.mlir", "--load", FAILING, "--pipeline", pipelines, "--timeout", 2]
    ended = launch(4, *COMMAND, *arguments, cwd=folder)
    assert ended.returncode != 0
    assert ended.stderr.count("error: the program was stopped after 2 s") == 1


@pytest.mark.parametrize("by", ["mpich", "openmpi", "slurm"])
def test_a_script_gets_the_results_on_every_rank(folder: Path, by: str) -> None:
    script = folder / "script.py"
    script.write_text(
        textwrap.dedent("""
            import numpy as np
            import mlir_shard
            from mlir_shard.runtime import execute
            from mlir_shard.runtime.launch import launched
            module = mlir_shard.parse(open("small.mlir").read(), mlir_shard.create_context())
            for scale in (1, 2):
                a = scale * np.ones((4, 3), np.float32)
                (sums,) = execute(module, [a])
                np.save(f"{launched.join().rank}.{scale}.npy", sums)
        """)
    )
    ended = launch(2, sys.executable, script, cwd=folder, by=by)
    assert ended.returncode == 0, ended.stderr
    for rank in range(2):
        for scale in (1, 2):
            np.testing.assert_array_equal(np.load(folder / f"{rank}.{scale}.npy"), np.full(3, 4.0 * scale))


@pytest.mark.parametrize("by", ["mpich", "openmpi", "slurm"])
def test_a_script_that_raises_on_one_rank_ends_all(folder: Path, by: str) -> None:
    script = folder / "script.py"
    script.write_text(
        textwrap.dedent("""
            from mlir_shard.runtime.launch import launched
            process = launched.join()
            if process.rank == 1:
                raise ValueError("only here")
            process.barrier()
        """)
    )
    ended = launch(3, sys.executable, script, cwd=folder, by=by)
    assert ended.returncode != 0
    assert ended.stderr.count("ValueError: only here") == 1


def test_an_unexpected_error_on_one_rank_is_said(folder: Path) -> None:
    script = folder / "run.py"
    script.write_text(
        textwrap.dedent("""
            import os, sys
            from mlir_shard.runtime import execution
            from mlir_shard.tools.shard_run import main
            if os.environ["PMI_RANK"] == "1":
                execution.random_inputs = None
            sys.exit(main(["program.mlir"]))
        """)
    )
    ended = launch(4, sys.executable, script, cwd=folder)
    assert ended.returncode != 0
    assert ended.stderr.count("shard-run: error: internal error") == 1


def test_alone_under_a_launcher_is_as_without_one(folder: Path, forked: list[str]) -> None:
    ended = launch(1, *forked, "program.mlir", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert "@main on 4 ranks" in ended.stdout


def test_mpirun_in_a_step_of_slurm_that_has_one_task(folder: Path) -> None:
    """Open MPI's launcher, which would start ranks by Slurm, starts them on this machine."""
    ended = launch(1, *COMMAND, "small.mlir", "--no-verify", "--mpi", open_mpi(), cwd=folder, by="slurm")
    assert ended.returncode == 0, ended.stderr
    assert "@main on 2 ranks" in ended.stdout


def test_ranks_that_srun_leaves_alone_are_told_once_what_to_do(folder: Path) -> None:
    command = [*srun("none"), "--ntasks=2", *COMMAND, "small.mlir"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    assert ended.returncode == 1
    assert ended.stderr.count("shard-run: error:") == 1
    assert "has started 2 ranks, but " in ended.stderr
    assert "reports 1: start them by `srun --mpi=pmi2`, or `srun --mpi=pmix` for Open MPI" in ended.stderr


def test_a_signal_to_the_launcher_leaves_nothing(folder: Path) -> None:
    script = folder / "run.py"
    script.write_text(
        textwrap.dedent("""
            import sys
            from pathlib import Path
            from mlir_shard.runtime.launch import launched
            from mlir_shard.tools.shard_run import main
            Path(f"{launched.join('wheel').rank}.here").touch()
            sys.exit(main(sys.argv[1:]))
        """)
    )
    pipelines = "shard-propagate;shard-spmdize,fail-on-rank{rank=1 how=hang}"
    arguments = ["small.mlir", "--load", str(FAILING), "--pipeline", pipelines]
    process = subprocess.Popen(
        [*launcher("mpich", 2).arguments, sys.executable, str(script), *arguments],
        cwd=folder,
        env=marked(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # Before all ranks have begun, a signal to Hydra's mpiexec may be lost.
    wait_until(lambda: len(list(folder.glob("*.here"))) == 2)
    assert marked_processes(folder)
    process.send_signal(signal.SIGTERM)
    process.wait(SECONDS)
    wait_until(lambda: not marked_processes(folder))


def marked(folder: Path) -> dict[str, str]:
    """Returns this environment with a mark, which identifies the processes that inherit it."""
    return {**os.environ, "SHARD_RUN_TEST": str(folder)}


def marked_processes(folder: Path) -> list[int]:
    """Returns the processes that have the mark in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            text = (path / "environ").read_bytes()
        except OSError:
            continue
        if f"SHARD_RUN_TEST={folder}".encode() in text.split(b"\0"):
            found.append(int(path.name))
    return found
