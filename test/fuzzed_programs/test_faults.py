# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs on ranks with a fault end with an error and leave nothing behind; tests one fault of each kind.

`python -m fuzzed_programs --kind faults` runs many.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hang_guard import SECONDS, wait_until
from runtime.local_program import needs_mpich

from fuzzed_programs import faults
from fuzzed_programs.outcome import DONE, FINDINGS, INTERNAL, LEFT, REFUSED_RUN, SILENT, SUCCEEDED


@needs_mpich
@pytest.mark.parametrize("number", range(len(faults.KINDS)), ids=faults.KINDS)
def test_a_fault(number: int) -> None:
    outcome = faults.run(faults.make(0, number), SECONDS)
    assert outcome.kind not in FINDINGS, outcome.detail


@needs_mpich
def test_shared_memory_without_space_is_named() -> None:
    outcome = faults.run(faults.Fault("memory"), SECONDS)
    if outcome.kind == DONE:
        pytest.skip("the permission to mount a small /dev/shm is missing")
    assert outcome.kind == REFUSED_RUN
    assert outcome.detail == "  error: /dev/shm is full, and the shared memory of MPI is there"


@pytest.mark.parametrize(
    ("kind", "status", "said", "left", "outcome"),
    [
        ("rank", 1, "shard-run: error: rank 1 of 4 was killed", "", REFUSED_RUN),
        ("rank", 0, "", "", DONE),
        ("fails", 0, "", "", SUCCEEDED),
        ("child", 1, "", "", SILENT),
        ("run", 143, "", "", REFUSED_RUN),
        ("interrupts", -2, "", "", REFUSED_RUN),
        ("interrupts", -2, "Traceback (most recent call last):\nKeyboardInterrupt", "", REFUSED_RUN),
        ("interrupts", -2, "", "/dev/shm/mpich_shm_1", LEFT),
        ("run", 130, "Traceback (most recent call last):\nKeyboardInterrupt", "", INTERNAL),
        ("run", 130, "shard-run: error: interrupted", "/dev/shm/mpich_shm_1", LEFT),
    ],
)
def test_outcomes(kind: str, status: int, said: str, left: str, outcome: str) -> None:
    assert faults.outcome_of(faults.Fault(kind), status, said, left).kind == outcome


def test_processes_and_files_that_are_left_are_seen(tmp_path: Path) -> None:
    temporary, memory = tmp_path / "temporary", tmp_path / "memory"
    for folder in (temporary, memory):
        folder.mkdir()
        (folder / folder.name).touch()
    folder_of_memory = os.open(memory, os.O_RDONLY)
    waiting = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], env={faults.MARK: "this-test"})
    try:
        expected = [str(waiting.pid), str(temporary / "temporary"), "memory"]
        wait_until(lambda: faults.remains("this-test", temporary, folder_of_memory) == expected)
    finally:
        waiting.kill()
        waiting.wait()
    assert faults.remains("this-test", temporary, None) == expected[1:2]
    os.close(folder_of_memory)
