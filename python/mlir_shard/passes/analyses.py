# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Analyses of the program that passes share: each is made once, and kept until a pass changes the program.

They tell of the program as the pass at work got it, so a pass asks for them before it changes anything. The idea is
upstream's `AnalysisManager`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from mlir_shard.ir.editing import Contents, contents, contents_of_all, operations_named
from mlir_shard.passes.registry import Changes

T = TypeVar("T")


class Analyses:
    """The analyses of a run on the operation `root`."""

    def __init__(self, root: Any) -> None:
        self._root = root
        # What the root holds at most; None where it may have got more since that was read.
        self._contents: Contents | None = None
        self._made: dict[tuple[Callable[[Any], Any], Any], Any] = {}

    def contents(self) -> Contents:
        """What the root holds, and names of what it held before."""
        if self._contents is None:
            self._contents = contents(self._root)
        return self._contents

    def of(self, analyze: Callable[[Any], T], op: Any) -> T:
        """What `analyze` gives for `op`, which is in the root."""
        key = (analyze, op.operation)
        if key not in self._made:
            self._made[key] = analyze(op)
        found: T = self._made[key]
        return found

    def update(self, changed: bool | Changes | None) -> None:
        """Drops what does not hold after a pass that has changed so much."""
        if changed is False:
            return
        self._made.clear()
        if not isinstance(changed, Changes):
            self._contents = None
        elif self._contents is not None:
            # What is in changed operations is in the root too; that others are gone from it is not known.
            new = contents_of_all(changed.ops) | contents_of_all(changed.attributed)
            self._contents |= new | Contents(attributes=frozenset(changed.everywhere))


# Of the runs under way, the innermost last.
_runs: list[Analyses] = []


@contextlib.contextmanager
def sharing_analyses(analyses: Analyses) -> Iterator[None]:
    """Has the passes that run meanwhile share the analyses."""
    _runs.append(analyses)
    try:
        yield
    finally:
        _runs.pop()


def analysis(analyze: Callable[[Any], T], op: Any) -> T:
    """What `analyze` gives for `op`, an operation of the run, as the pass at work got it; anew where no passes run."""
    return _runs[-1].of(analyze, op) if _runs else analyze(op)


def held(op: Any) -> Contents:
    """What an operation of the run held at most when the pass at work got it; what it holds where no passes run.

    There may be names of what earlier passes have erased, or of what is beside `op`.
    """
    return _runs[-1].contents() if _runs else contents(op)


def held_operations(op: Any, *names: str) -> Sequence[Any]:
    """`operations_named`, without a walk where it is known that there is none; for passes that have made none yet."""
    return operations_named(op, *names) if held(op).has_any(names) else ()
