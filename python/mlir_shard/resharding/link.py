# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What joins the devices along a mesh axis."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite


@dataclass(frozen=True, slots=True)
class Link:
    """Seconds until a message begins to arrive, and the bytes a second that a device receives.

    ValueError unless the latency is finite and not negative, and the bandwidth finite and positive.
    """

    latency: float
    bandwidth: float

    def __post_init__(self) -> None:
        if not (isfinite(self.latency) and self.latency >= 0):
            raise ValueError(f"a latency is a number of seconds, at least 0, not {self.latency}")
        if not (isfinite(self.bandwidth) and self.bandwidth > 0):
            raise ValueError(f"a bandwidth is a positive number of bytes a second, not {self.bandwidth}")


DEFAULT_LINK = Link(latency=1e-6, bandwidth=1e11)
"""A microsecond and 100 GB/s: the order of what joins accelerators within a machine or a pod."""
