# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of machine code that the process of the lowering, or one rank, makes and others load."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from runtime.in_process import lower
from runtime.local_program import port, spec

from mlir_shard.runtime import RunError
from mlir_shard.runtime.launch import compiler, object_code, python_process
from mlir_shard.runtime.launch.jit import Executable
from mlir_shard.runtime.launch.object_code import CodeMissing, SharedByMpi
from mlir_shard.runtime.lowering.lowering_process import LoweringProcess
from mlir_shard.runtime.program import Lowered, Program

TEXT = """
func.func @main(%a: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %0 = stablehlo.exponential %a : tensor<1x8xf32>
  %1 = stablehlo.tanh %0 : tensor<1x8xf32>
  return %1 : tensor<1x8xf32>
}
"""
A = np.linspace(-2, 2, 8, dtype=np.float32).reshape(1, 8)


def program_of(lowered: Lowered) -> Program:
    return Program(lowered, "main", (port("argument 0", spec("8xf32"), 2),), (port("result 0", spec("8xf32"), 2),), 2)


@pytest.fixture
def program() -> Program:
    (text,) = lower([TEXT], "main")
    return program_of(Lowered(text))


def check(executable: Executable) -> None:
    np.testing.assert_allclose(executable([A])[0], np.tanh(np.exp(A)), rtol=1e-6)


def compiles_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise AssertionError("it is compiled again")

    monkeypatch.setattr(compiler, "make_engine", refuse)


@pytest.mark.parametrize("cpu", ["native", "x86-64"])
def test_what_is_lowered_comes_with_machine_code(cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (lowered,) = LoweringProcess(cpu=cpu)([TEXT], "main")
    assert lowered.code and lowered.compile_time > 0
    compiles_no_more(monkeypatch)
    check(Executable(program_of(lowered)))


def test_ranks_on_other_machines_get_the_text_alone() -> None:
    (lowered,) = LoweringProcess(compiles=False)([TEXT], "main")
    assert not lowered.code
    check(Executable(program_of(lowered)))


def test_a_rank_that_loads_machine_code_loads_no_mlir(tmp_path: Path) -> None:
    (lowered,) = LoweringProcess()([TEXT], "main")
    (tmp_path / "program").write_bytes(pickle.dumps((program_of(lowered), A)))
    script = """
import pickle, sys
from mlir_shard.runtime.launch import rank
from mlir_shard.runtime.launch.jit import Executable
program, array = pickle.loads(open(sys.argv[1], "rb").read())
print(Executable(program)([array])[0].shape, "mlir_shard.host" in sys.modules)
"""
    command = [sys.executable, "-c", script, str(tmp_path / "program")]
    ended = subprocess.run(command, capture_output=True, text=True, env=python_process.python_environment())
    assert (ended.stdout, ended.stderr) == ("(1, 8) False\n", "")


@dataclass
class Ranks:
    """Ranks that are threads, with CPUs of these names."""

    cpus: tuple[str, ...]
    shown: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.barrier = Barrier(len(self.cpus), timeout=60)

    def meet(self, rank: int, mine: Any) -> list[Any]:
        """Returns the values of all ranks."""
        self.shown[rank] = mine
        self.barrier.wait()
        found = [self.shown[one] for one in range(len(self.cpus))]
        self.barrier.wait()
        return found


@dataclass
class Rank:
    """One of the ranks, with the interface of `MpiProcess`."""

    ranks: Ranks
    rank: int

    def all_gather(self, array: Any) -> list[Any]:
        name = self.ranks.cpus[self.rank].encode().ljust(array.size)
        return self.ranks.meet(self.rank, np.frombuffer(name, np.uint8))

    def broadcast(self, data: bytes, root: int) -> bytes:
        return self.ranks.meet(self.rank, data)[root]


def shared_by(cpus: tuple[str, ...], codes: dict[int, bytes]) -> list[Any]:
    """Returns the code that each rank takes, or None for a rank that gives its own from `codes`."""
    ranks = Ranks(cpus)

    def run(rank: int) -> Any:
        shared = SharedByMpi(Rank(ranks, rank))
        try:
            taken = shared.take()
        except CodeMissing as error:
            return error
        if taken is None:
            shared.give(codes[rank])
        return taken

    with ThreadPoolExecutor(len(cpus)) as threads:
        return list(threads.map(run, range(len(cpus))))


def test_one_rank_compiles_for_each_cpu() -> None:
    taken = shared_by(("new", "old", "old", "new", "old"), {0: b"of 0", 1: b"of 1"})
    assert taken == [None, None, b"of 1", b"of 0", b"of 1"]


def test_ranks_with_another_cpu_go_on_where_one_fails() -> None:
    first, second, *others = shared_by(("new", "old", "old", "new"), {0: b"of 0", 1: b""})
    assert (first, second, others[1]) == (None, None, b"of 0")
    assert isinstance(others[0], CodeMissing)


def test_a_rank_that_cannot_compile_says_so_to_others(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    class Shared:
        def take(self) -> None:
            return None

        def give(self, code: bytes) -> None:
            given.append(code)

    def fail(*arguments: Any) -> None:
        raise RunError("no machine code")

    monkeypatch.setattr(compiler, "make_engine", fail)
    with pytest.raises(RunError, match="no machine code"):
        Executable(program, None, Shared())
    assert given == [b""]


def test_this_machine_has_its_own_code() -> None:
    assert object_code.host_cpu() == object_code.host_cpu()
    assert len(object_code.host_cpu()) == 32
