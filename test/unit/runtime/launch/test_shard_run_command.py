# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the command shard-run: its inputs and outputs, and its cleanup when it or a rank is stopped."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from default_signals import default_signals
from fuzzed_programs import faults
from hang_guard import SECONDS, files_below, wait_until
from runtime.local_program import needs_mpich

from mlir_shard.runtime.launch import python_process

COMMAND = [sys.executable, "-m", "mlir_shard.tools.shard_run"]
FAILING = Path(__file__).resolve().parents[3] / "tools" / "shard-run" / "Inputs" / "fail_on_rank.py"

PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(
    %a: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<3xi32>)
    -> (tensor<4x3xf32>, tensor<3xi32>) {
  %0 = stablehlo.add %a, %a : tensor<4x3xf32>
  %1 = stablehlo.multiply %b, %b : tensor<3xi32>
  return %0, %1 : tensor<4x3xf32>, tensor<3xi32>
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    return path


def shard_run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [*python_process.python_command("mlir_shard.tools.shard_run"), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=SECONDS)


@needs_mpich
def test_inputs_and_results_as_files(program: Path, tmp_path: Path) -> None:
    a, b = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([1, -2, 3], np.int32)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    np.savez(tmp_path / "both.npz", a, b)
    for inputs in (["a.npy", "b.npy"], ["both.npz"]):
        ended = shard_run("-n", 4, program, "--inputs", *inputs, "--save", "out.npz", cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        with np.load(tmp_path / "out.npz") as saved:
            assert saved.files == ["result0", "result1"]
            np.testing.assert_array_equal(saved["result0"], a + a)
            np.testing.assert_array_equal(saved["result1"], b * b)
        (tmp_path / "out.npz").unlink()
    np.savez(tmp_path / "expected.npz", a + a, b * b + np.array([0, 0, 4], np.int32))
    inputs = ["--inputs", "both.npz", "--expect", "expected.npz", "--rtol=1e-3"]
    ended = shard_run(program, *inputs, cwd=tmp_path)
    assert ended.returncode == 1
    assert "@main on 4 ranks, compared with expected results:" in ended.stdout
    assert ended.stderr.endswith("result 1 is 9 in place of 13 at [2], and 1 of 3 elements differ\n")


A, B = np.zeros((4, 3), np.float32), np.zeros(3, np.int32)


@pytest.mark.parametrize(
    ("option", "files", "complaint"),
    [
        ("--inputs", {"a.npy": A}, "the program expects 2 arrays, not 1, 'a.npy': (tensor<4x3xf32>, tensor<3xi32>)"),
        (
            "--inputs",
            {"a.npy": A, "b.npy": np.zeros(4, np.int32)},
            "cannot use 'b.npy': argument 1 of the program is tensor<3xi32>, but the given array has shape 4",
        ),
        (
            "--inputs",
            {"ab.npz": [A.astype(np.float64), B]},
            "cannot use 'arr_0' in 'ab.npz': argument 0 of the program is tensor<4x3xf32>, "
            "but the given array has dtype float64, not float32",
        ),
        (
            "--expect",
            {"ab.npz": [A, A]},
            "cannot use 'arr_1' in 'ab.npz': result 1 of the program is tensor<3xi32>, "
            "but the given array has shape 4x3",
        ),
        ("--expect", {"a.npy": A}, "the program returns 2 arrays, not 1, 'a.npy': (tensor<4x3xf32>, tensor<3xi32>)"),
    ],
)
def test_wrong_arrays(program: Path, tmp_path: Path, option: str, files: dict[str, Any], complaint: str) -> None:
    for name, given in files.items():
        np.save(tmp_path / name, given) if name.endswith(".npy") else np.savez(tmp_path / name, *given)
    (tmp_path / "out.npz").write_bytes(b"as before")
    # The inputs are wrong for any pipeline, so the pipeline is not checked.
    ended = shard_run(program, option, *files, "--save", "out.npz", "--pipeline", "no-pass;no-pass", cwd=tmp_path)
    assert ended.returncode == 1
    assert ended.stderr == f"shard-run: error: {complaint}\n"
    assert (tmp_path / "out.npz").read_bytes() == b"as before"


@needs_mpich
def test_the_seed_decides_the_inputs(program: Path, tmp_path: Path) -> None:
    saved = []
    for number, seed in enumerate([5, 5, 6]):
        ended = shard_run(program, "--seed", seed, "--save", f"{number}.npz", "--no-verify", cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        saved.append(np.load(tmp_path / f"{number}.npz")["result0"])
    np.testing.assert_array_equal(saved[0], saved[1])
    assert not np.array_equal(saved[0], saved[2])


@needs_mpich
def test_one_result_as_a_file(program: Path, tmp_path: Path) -> None:
    (tmp_path / "one.mlir").write_text(
        PROGRAM.replace(", tensor<3xi32>) {", ") {").replace(
            "return %0, %1 : tensor<4x3xf32>, tensor<3xi32>", "return %0 : tensor<4x3xf32>"
        )
    )
    np.savez(tmp_path / "in.npz", np.ones((4, 3), np.float32), np.ones(3, np.int32))
    ended = shard_run("one.mlir", "--inputs", "in.npz", "-o", "out.npy", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), np.full((4, 3), 2, np.float32))
    ended = shard_run(program, "-o", "out.npy", cwd=tmp_path)
    message = "--output=out.npy: a .npy file holds one result, but the program has 2: use .npz"
    assert (ended.returncode, ended.stderr) == (1, f"shard-run: error: {message}\n")


@needs_mpich
def test_times_of_ranks(program: Path, tmp_path: Path) -> None:
    ended = shard_run(program, "--timing", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    _, _, table = ended.stdout.partition("\n\n")
    rows = [line.split() for line in table.splitlines()]
    assert rows[0] == ["rank", "load", "compile", "run", "peak", "memory", "predicted"]
    assert [row[0] for row in rows[1:]] == ["0", "1", "2", "3"]
    assert all(
        float(amount) >= 0 and unit in ("s", "ms", "µs", "ns", "MiB")
        for row in rows[1:]
        for amount, unit in zip(row[1::2], row[2::2], strict=True)
    )
    assert "compile" not in shard_run(program, cwd=tmp_path).stdout


@needs_mpich
def test_compiled_programs_are_kept(program: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = shard_run(program, "--cache", str(cache), cwd=tmp_path)
    # One file holds the program of the ranks and the one without sharding, with their machine code.
    kept = {path: path.stat().st_mtime_ns for path in cache.iterdir()}
    assert first.returncode == 0 and len(kept) == 1
    second = shard_run(program, "--cache", str(cache), cwd=tmp_path)
    assert (second.returncode, second.stdout) == (0, first.stdout)
    assert {path: path.stat().st_mtime_ns for path in cache.iterdir()} == kept
    other = shard_run(program, "--cache", str(cache), "--cpu", "x86-64", cwd=tmp_path)
    assert other.returncode == 0 and len(list(cache.iterdir())) == 2


@needs_mpich
def test_times_of_repeated_calls_as_json(tmp_path: Path) -> None:
    program = tmp_path / "program.mlir"
    program.write_text(faults.PROGRAM)
    ended = shard_run(program, "--timing=json", "--repeat", "3", "--threads", "2", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    times = json.loads(ended.stdout.partition("\n\n")[2])
    assert len(times["ranks"]) == 4
    for rank in times["ranks"]:
        assert len(rank["runs"]) == 3 and rank["first_run"] == rank["runs"][0]
        assert rank["later_runs"] == sum(rank["runs"][1:]) / 2
        assert rank["message_calls"] > 0 and 0 < rank["in_messages"] < rank["runs"][2]
        assert rank["peak_bytes"] > 0
    assert times["predicted_communication"]["bytes_received"] > 0


@needs_mpich
def test_ranks_need_the_memory_that_is_predicted(tmp_path: Path) -> None:
    program = tmp_path / "program.mlir"
    program.write_text(faults.PROGRAM.replace("8x", "2048x").replace("x4x", "x2048x"))
    ended = shard_run(program, "--timing=json", "--no-verify", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    times = json.loads(ended.stdout.partition("\n\n")[2])
    # The product, which is summed in place, and a rank's shards of the operands.
    assert 16 * 2**20 <= times["predicted_peak_bytes"] < 17 * 2**20
    for rank in times["ranks"]:
        # Libraries need some MiB, and the operands may be in memory that was allocated before the call.
        assert 16 * 2**20 <= rank["peak_bytes"] < times["predicted_peak_bytes"] + 16 * 2**20


@needs_mpich
def test_progress_is_shown_on_a_terminal_and_goes(program: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [*COMMAND, str(program)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        shown = b""
        # Reading fails after every writer has closed the terminal.
        with contextlib.suppress(OSError):
            while piece := os.read(ours, 4096):
                shown += piece
        os.close(ours)
        assert process.stdout is not None
        written = process.stdout.read()
    assert process.returncode == 0
    assert b"sharding" in shown and b"running @main" in shown
    assert written.startswith("@main on 4 ranks")
    # The last output erases the line.
    assert shown.rstrip().endswith(b"\x1b[2K")


@needs_mpich
def test_a_folder_with_modules_of_known_names_is_no_harm(program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "json.py").write_text("raise RuntimeError('not the json that is meant')")
    script = "import sys; sys.path.pop(0); from mlir_shard.tools.shard_run import main; sys.exit(main())"
    ended = subprocess.run(
        [sys.executable, "-c", script, str(program)], cwd=folder, capture_output=True, text=True, timeout=SECONDS
    )
    assert ended.returncode == 0, ended.stderr


@needs_mpich
def test_more_ranks_than_cores(program: Path, tmp_path: Path) -> None:
    text = PROGRAM.replace('"x"=2, "y"=2', '"x"=5').replace("4x3", "5x3")
    program.write_text(text)
    cores = os.sched_getaffinity(0)
    # Processes that are started from here inherit the one core.
    os.sched_setaffinity(0, {min(cores)})
    try:
        ended = shard_run(program, cwd=tmp_path)
    finally:
        os.sched_setaffinity(0, cores)
    assert ended.returncode == 0, ended.stderr
    assert "@main on 5 ranks" in ended.stdout


def test_without_mpich_the_error_says_what_to_install(program: Path, tmp_path: Path) -> None:
    script = """
import importlib.metadata, sys
found = importlib.metadata.distribution
def distribution(name):
    if name == "mpich":
        raise importlib.metadata.PackageNotFoundError(name)
    return found(name)
importlib.metadata.distribution = distribution
from mlir_shard.tools.shard_run import main
sys.exit(main())
"""
    ended = subprocess.run(
        [sys.executable, "-c", script, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS
    )
    assert ended.returncode == 1
    assert ended.stderr == (
        "shard-run: error: the package mpich, which runs programs on several ranks, is not installed: "
        "pip install 'mlir-shard[run]'\n"
    )


class Hanging:
    """A shard-run in which all ranks have begun and one rank hangs."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        pipelines = "shard-propagate;shard-spmdize,fail-on-rank{rank=1 how=hang}"
        with default_signals():
            self.process = subprocess.Popen(
                [*COMMAND, str(program), "--load", str(FAILING), "--pipeline", pipelines],
                env={**os.environ, "TMPDIR": str(self.temporary)},
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        wait_until(lambda: len(files_below(self.temporary, "rank.*.shm")) == 4)
        self.pids = [[*pickle.loads(path.read_bytes())] for path in files_below(self.temporary, "rank.*.pids")]
        named = {line for path in files_below(self.temporary, "rank.*.shm") for line in pickle.loads(path.read_bytes())}
        self.shared_memory = [Path(name) for name in named]

    def end(self) -> tuple[int, str]:
        """Waits until the process ends by itself, and returns its exit status and its standard error."""
        _, errors = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, errors

    def ranks_are_gone(self) -> bool:
        return not any(is_running(pid) for pids in self.pids for pid in pids)


def is_running(pid: int) -> bool:
    """Returns True if the process exists and has not ended, that is, unless it is a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def hanging(program: Path, tmp_path: Path) -> Iterator[Hanging]:
    started = Hanging(program, tmp_path)
    try:
        yield started
    finally:
        for pid in [started.process.pid, *(pid for pids in started.pids for pid in pids)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        started.process.communicate()


@needs_mpich
@pytest.mark.parametrize(
    ("number", "code", "errors"),
    [(signal.SIGINT, 130, "shard-run: error: interrupted\n"), (signal.SIGTERM, 143, ""), (signal.SIGHUP, 129, "")],
)
def test_a_signal_ends_everything(hanging: Hanging, number: int, code: int, errors: str) -> None:
    hanging.process.send_signal(number)
    assert hanging.end() == (code, errors)
    wait_until(hanging.ranks_are_gone)
    assert list(hanging.temporary.iterdir()) == []
    assert not any(path.exists() for path in hanging.shared_memory)


@needs_mpich
def test_ranks_do_not_outlive_a_killed_run(hanging: Hanging) -> None:
    hanging.process.kill()
    wait_until(hanging.ranks_are_gone)
    assert list(hanging.temporary.iterdir()) == []
    assert not any(path.exists() for path in hanging.shared_memory)


@needs_mpich
@pytest.mark.parametrize("rank", [0, 3])
def test_a_rank_killed_from_outside_is_named(hanging: Hanging, rank: int) -> None:
    child, _ = hanging.pids[rank]
    os.kill(child, signal.SIGKILL)
    message = f"shard-run: error: rank {rank} of 4 was killed by SIGKILL (Killed); it had no output\n"
    assert hanging.end() == (1, message)
    wait_until(hanging.ranks_are_gone)
    assert list(hanging.temporary.iterdir()) == []
    assert not any(path.exists() for path in hanging.shared_memory)


@needs_mpich
def test_an_ended_launcher_is_noticed(hanging: Hanging) -> None:
    waiting = hanging.pids[0][1]
    # Of the processes that mpiexec starts on each machine, the one that has started a rank.
    proxy = int(Path(f"/proc/{waiting}/stat").read_text().rpartition(") ")[2].split()[1])
    os.kill(proxy, signal.SIGKILL)
    code, errors = hanging.end()
    assert code == 1
    assert "the launcher process that started this rank has ended" in errors
    wait_until(hanging.ranks_are_gone)
    assert list(hanging.temporary.iterdir()) == []
    assert not any(path.exists() for path in hanging.shared_memory)


@needs_mpich
def test_a_second_interrupt_changes_nothing(hanging: Hanging) -> None:
    hanging.process.send_signal(signal.SIGINT)
    wait_until(lambda: not is_running(hanging.pids[0][0]))
    hanging.process.send_signal(signal.SIGINT)
    assert hanging.end() == (130, "shard-run: error: interrupted\n")
    wait_until(hanging.ranks_are_gone)
    assert list(hanging.temporary.iterdir()) == []
    assert not any(path.exists() for path in hanging.shared_memory)


@needs_mpich
def test_many_interrupts_leave_nothing(hanging: Hanging) -> None:
    while hanging.process.poll() is None:
        hanging.process.send_signal(signal.SIGINT)
        os.sched_yield()
    assert hanging.process.returncode != 0
    wait_until(hanging.ranks_are_gone)
    wait_until(lambda: list(hanging.temporary.iterdir()) == [])
    assert not any(path.exists() for path in hanging.shared_memory)
