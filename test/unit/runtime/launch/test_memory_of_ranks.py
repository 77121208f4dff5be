# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the number of ranks, or devices of one process, for which a machine has memory."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from runtime.local_program import port, spec

from mlir_shard.runtime import RunError
from mlir_shard.runtime.launch import processes, python_process
from mlir_shard.runtime.program import Lowered, Program

PAGE = 1 << 12
# The memory of 10 processes of 32 MiB, or of 80 devices of 4 MiB.
PAGES = 10 * (32 << 20) // PAGE


class Launched(Exception):
    """Raised when the ranks would be started."""


@pytest.fixture(autouse=True)
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(*_: object) -> int:
        raise Launched

    sizes = {"SC_PHYS_PAGES": PAGES, "SC_PAGE_SIZE": PAGE}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    monkeypatch.setattr(processes, "_launch", launch)


def run(ranks: int, in_one_process: bool) -> None:
    one = port("argument 0", spec("2xf32"), 1)
    program = Program(Lowered(""), "main", (replace(one, boxes=one.boxes * ranks),), (), ranks)
    processes.RankProcesses(program, [], [], python_process.python_environment(), None, in_one_process=in_one_process)


@pytest.mark.parametrize(
    ("in_one_process", "most"),
    [pytest.param(False, 10, id="processes"), pytest.param(True, 80, id="devices of one process")],
)
def test_as_many_as_there_is_memory_for(in_one_process: bool, most: int) -> None:
    with pytest.raises(Launched):
        run(most, in_one_process)
    message = f"the program is for {most + 1} devices, but this machine has memory for at most {most}"
    with pytest.raises(RunError) as failure:
        run(most + 1, in_one_process)
    assert failure.value.message == message


def test_one_rank_may_always_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1, "SC_PAGE_SIZE": PAGE}.__getitem__)
    with pytest.raises(Launched):
        run(1, None)
    with pytest.raises(RunError, match="memory for at most 0"):
        run(2, None)
