# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How fast a device computes, for weighing what it computes against what it receives."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from mlir_shard.resharding.link import DEFAULT_LINK


@dataclass(frozen=True, slots=True)
class DeviceRates:
    """Operations a second, bytes a second of its memory, and bytes a second that it receives at most.

    ValueError unless all are finite and positive.
    """

    operations: float = 1e14
    memory: float = 1e12
    network: float = DEFAULT_LINK.bandwidth

    def __post_init__(self) -> None:
        for what, rate in (("operations", self.operations), ("memory", self.memory), ("network", self.network)):
            if not (isfinite(rate) and rate > 0):
                raise ValueError(f"{what}: a positive number a second, not {rate}")

    def seconds(self, operations: int, num_bytes: int) -> float:
        """What a device takes for so many operations on so many bytes: the longer of the two, as a roofline has it
        (Williams, Waterman, Patterson 2009)."""
        return max(operations / self.operations, num_bytes / self.memory)
