# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the frequency of garbage collections while passes run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from threading import Event, Thread

import pytest

import mlir_shard
from mlir_shard.garbage import ALLOCATIONS_BETWEEN_COLLECTIONS, fewer_collections, no_collections

DEFAULT = (700, 10, 10)


@pytest.fixture(autouse=True)
def default_threshold() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*DEFAULT)
    yield
    gc.set_threshold(*before)


def test_passes_run_with_fewer_collections_and_leave_all_as_it_was() -> None:
    seen = []

    class Look(mlir_shard.Pass):
        name = "test-look"

        def run(self, op: object) -> None:
            seen.append(gc.get_threshold())

    module = mlir_shard.parse("", mlir_shard.create_context())
    mlir_shard.run(module, [Look()])
    assert seen == [(ALLOCATIONS_BETWEEN_COLLECTIONS, *DEFAULT[1:])]
    assert gc.get_threshold() == DEFAULT


@pytest.mark.parametrize("chosen", [0, 10 * ALLOCATIONS_BETWEEN_COLLECTIONS])
def test_who_collects_less_or_not_at_all_is_left_alone(chosen: int) -> None:
    gc.set_threshold(chosen)
    before = gc.get_threshold()
    with fewer_collections():
        assert gc.get_threshold() == before
    assert gc.get_threshold() == before


def test_threads_that_end_in_any_order_leave_all_as_it_was() -> None:
    begun, ends = Event(), Event()

    def other() -> None:
        with fewer_collections():
            begun.set()
            ends.wait()

    thread = Thread(target=other)
    with fewer_collections():
        thread.start()
        begun.wait()
    assert gc.get_threshold()[0] == ALLOCATIONS_BETWEEN_COLLECTIONS
    ends.set()
    thread.join()
    assert gc.get_threshold() == DEFAULT


def test_nothing_is_collected_and_then_as_before() -> None:
    with no_collections():
        assert not gc.isenabled()
        with no_collections():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
