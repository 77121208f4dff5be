# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What makes a group of devices one that a communicator can be made for."""

from __future__ import annotations

from typing import Any, Protocol


class Group(Protocol):
    """Equal where the groups are; hashable."""

    @property
    def size(self) -> int:
        """How many devices are in one group, at most."""
        ...

    @property
    def is_world(self) -> bool:
        """Whether there is one group, in the order of the ranks."""
        ...

    def colour_and_key(self) -> tuple[Any, Any]:
        """The number of this rank's group and its place in it, built as integers of 32 bits."""
        ...
