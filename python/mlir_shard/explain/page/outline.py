# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The groups in which the values of a program are shown: functions, and in them the scopes that front ends name.

JAX names an op by the path of scopes that it was traced in, `jit(step)/layer_0/attention/dot_general`. PyTorch gives
the calls around an op. Other ops are in groups of the loops and other regions around them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlir_shard.explain.places import Place
from mlir_shard.explain.values import Tensor

_PART_OF_ARGUMENT = re.compile(r"\[[^\]]*\]|[^.\[\]]+")


class Outline:
    """A tree of groups.

    Attributes:
        parents: the parent of each group; -1 for functions.
        labels: the label of each group.
    """

    def __init__(self) -> None:
        self.parents: list[int] = []
        self.labels: list[str] = []
        self._known: dict[tuple[int, str], int] = {}

    def group(self, tensor: Tensor, regions: Sequence[tuple[str, Place]]) -> int:
        """Returns the group of a tensor that is in the regions of some ops."""
        group = -1
        for label in (f"@{tensor.function}", *_path(tensor, regions)):
            group = self._below(group, label)
        return group

    def function(self, symbol: str) -> int:
        """Returns the group of a function."""
        return self._below(-1, f"@{symbol}")

    def _below(self, parent: int, label: str) -> int:
        key = (parent, label)
        if key not in self._known:
            self._known[key] = len(self.labels)
            self.parents.append(parent)
            self.labels.append(label)
        return self._known[key]


def _path(tensor: Tensor, regions: Sequence[tuple[str, Place]]) -> list[str]:
    place = tensor.place
    if tensor.op == "result":
        return ["results"]
    if tensor.op == "argument":
        return ["arguments", *_PART_OF_ARGUMENT.findall(place.name)[:-1]]
    if place.name:
        return scopes(place.name)[:-1] or _scopes_around(place)
    if place.called_from is not None:
        return _calls(place)
    return [f"{name} at line {at.line}" if at.line else name for name, at in regions]


def _scopes_around(place: Place) -> list[str]:
    """Returns the scopes of the innermost call around a place that has scopes; empty if no call has."""
    at = place.called_from
    while at is not None and "/" not in at.name:
        at = at.called_from
    return scopes(at.name) if at is not None else []


def scopes(name: str) -> list[str]:
    """Returns the parts of a name between slashes that are in no brackets."""
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(name):
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth = max(depth - 1, 0)
        elif letter == "/" and not depth:
            parts.append(name[begin:at])
            begin = at + 1
    return [part for part in (*parts, name[begin:]) if part]


def _calls(place: Place) -> list[str]:
    """Returns the calls around a place, the outermost first."""
    found: list[str] = []
    at: Place | None = place
    while at is not None:
        found.append(f"{at.file.rpartition('/')[2]}:{at.line}" if at.file else at.name)
        at = at.called_from
    return found[::-1]
