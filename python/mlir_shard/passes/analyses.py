# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Analyses that passes share: each is computed once, and cached until a pass changes the program.

An analysis describes the program at the start of the current pass, so a pass must request it before its first change.
Modelled on upstream's `AnalysisManager`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from mlir_shard.ir.editing import Contents, contents, contents_of_all, operations_named
from mlir_shard.passes.registry import Changes

T = TypeVar("T")


class Analyses:
    """The analyses of a run on the operation `root`."""

    def __init__(self, root: Any) -> None:
        self._root = root
        # A superset of the contents of the root. None if unknown.
        self._contents: Contents | None = None
        self._cached: dict[tuple[Callable[[Any], Any], Any], Any] = {}

    def contents(self) -> Contents:
        """Returns a superset of the contents of the root: names of erased operations may be left in it."""
        if self._contents is None:
            self._contents = contents(self._root)
        return self._contents

    def of(self, analyze: Callable[[Any], T], op: Any) -> T:
        """Returns `analyze(op)`, computed once until the program changes; `op` must be in the root."""
        key = (analyze, op.operation)
        if key not in self._cached:
            self._cached[key] = analyze(op)
        found: T = self._cached[key]
        return found

    def update(self, changed: bool | Changes | None, op: Any) -> None:
        """Invalidates analyses after a pass on `op`; `changed` is the result of its `run`."""
        if changed is False:
            return
        self._cached.clear()
        if not isinstance(changed, Changes):
            self._contents = None
            return
        self._cached.update({(analyze, op): result for analyze, result in changed.analyses.items()})
        if self._contents is not None:
            if changed.without and op == self._root:
                self._contents = self._contents.without(changed.without)
            # Changed operations are in the root too. Other erased operations are unknown, so nothing else is removed.
            for ops in filter(len, (changed.ops, changed.moved)):
                self._contents |= contents_of_all(ops)
            # If only the attributes of an operation have changed, nothing inside it is new.
            if len(changed.attributed):
                self._contents |= contents_of_all(changed.attributed, alone=True)
            if not self._contents.attributes.issuperset(changed.everywhere):
                self._contents |= Contents(attributes=frozenset(changed.everywhere))


# The analyses of the innermost run of the thread.
_of_run: ContextVar[Analyses | None] = ContextVar("analyses", default=None)


@contextlib.contextmanager
def sharing_analyses(analyses: Analyses) -> Iterator[None]:
    """Shares `analyses` among the passes that run in the context."""
    token = _of_run.set(analyses)
    try:
        yield
    finally:
        _of_run.reset(token)


def analysis(analyze: Callable[[Any], T], op: Any) -> T:
    """Returns `analyze(op)` for the program at the start of the current pass; computes it anew outside of a run."""
    analyses = _of_run.get()
    return analyze(op) if analyses is None else analyses.of(analyze, op)


def held(op: Any) -> Contents:
    """Returns a superset of the contents of `op` at the start of the current pass, and the contents outside of a run.

    The superset may have names of operations that earlier passes erased, and of operations outside of `op`.
    """
    analyses = _of_run.get()
    return contents(op) if analyses is None else analyses.contents()


def held_operations(op: Any, *names: str) -> Sequence[Any]:
    """Returns `operations_named(op, *names)`, without a walk if `held` has none of the names.

    A pass must call it before it creates such operations.
    """
    return operations_named(op, *names) if held(op).has_any(names) else ()
