# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Frozen values that compute their hash once, for values of many parts that are often looked up in tables."""

from __future__ import annotations

from collections.abc import Hashable


class HashedOnce:
    """The base of a frozen dataclass that stores its hash. A subclass defines `__hash__` from fields that it compares:

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            return self._hashed((self.mesh, self.axes))
    """

    __slots__ = ("_hash",)

    _hash: int

    def _hashed(self, parts: Hashable) -> int:
        """Stores and returns the hash of `parts`."""
        found = hash(parts)
        object.__setattr__(self, "_hash", found)
        return found
