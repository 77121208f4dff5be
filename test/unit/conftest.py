# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fixtures that run processes in tests as forks of a process with the whole project imported, and that evict plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fork_server import ForkServer

from mlir_shard.resharding.operator.cheapest_reshards import shared_cheapest_reshards
from mlir_shard.resharding.planner import shared_planner
from mlir_shard.runtime.launch import python_process


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """Provides a server of forks, with commands for tests that start tools."""
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def forked_processes(fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lowers and runs programs in forks."""
    monkeypatch.setattr(python_process, "python_command", fork_server.command)


@pytest.fixture
def evict_plans() -> Iterator[Callable[[], None]]:
    """Returns a function that evicts the plans that programs share; they are also evicted before and after the test."""

    def evict() -> None:
        shared_planner.cache_clear()
        shared_cheapest_reshards.cache_clear()

    evict()
    yield evict
    evict()
