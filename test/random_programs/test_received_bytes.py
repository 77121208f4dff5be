# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the comparison of received bytes between two targets."""

from __future__ import annotations

from random_programs.received_bytes import ReceivedBytes


def test_totals_and_differences() -> None:
    received = ReceivedBytes()
    received.add("same", (("shard", (("dot", 8), ("add", 4))), ("stablehlo", (("dot", 12),))))
    received.add("other", (("shard", (("dot", 8),)), ("stablehlo", (("dot", 2048),))))
    received.add("one target", (("shard", (("dot", 8),)),))
    assert [*received.lines("even shards")] == [
        "even shards: a device receives shard 20 B, stablehlo 2,060 B; the same in 1 of 2 programs",
        "  other: shard 8 B, stablehlo 2,048 B",
        "  for dot: shard 16 B, stablehlo 2,060 B in 2 programs, most apart in other (2,040 B)",
        "  for add: shard 4 B, stablehlo 0 B in 1 programs, most apart in same (4 B)",
    ]
