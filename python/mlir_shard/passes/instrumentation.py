# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instrumentation of a pipeline: the IR between passes, and the time of each pass."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO


class Instrumentation:
    """Hooks around each pass; `title` is the pass in words, `name` its command-line name, `op` the op it runs on."""

    def before_pass(self, title: str, name: str, op: Any) -> None:
        """Called before a pass runs."""

    def after_pass(self, title: str, name: str, op: Any, failed: bool) -> None:
        """Called after a pass ran, whether or not it failed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Selection:
    """Passes by name, or all of them."""

    names: frozenset[str] = frozenset()
    everything: bool = False

    def __contains__(self, name: object) -> bool:
        return self.everything or name in self.names

    def __bool__(self) -> bool:
        return self.everything or bool(self.names)


@dataclasses.dataclass(slots=True)
class PrintIR(Instrumentation):
    """Prints the IR around passes under mlir-opt's headings.

    show: returns the text of an operation; only_changes: prints after a pass only if the text has changed;
    after_failures: prints after the passes that fail, and only those; module_scope: prints the outermost operation
    instead of the operation that a pass runs on.
    """

    show: Callable[[Any], str]
    stream: TextIO
    before: Selection = Selection()
    after: Selection = Selection()
    only_changes: bool = False
    after_failures: bool = False
    module_scope: bool = False
    _text_before: str | None = None

    def before_pass(self, title: str, name: str, op: Any) -> None:
        if self.only_changes and name in self.after:
            self._text_before = self._text(op)
        if name in self.before:
            self._print("Before", title, name, op)

    def after_pass(self, title: str, name: str, op: Any, failed: bool) -> None:
        if failed:
            if self.after_failures or name in self.after:
                self._print("After", f"{title} Failed", name, op)
            return
        if self.after_failures or name not in self.after:
            return
        if not (self.only_changes and self._text(op) == self._text_before):
            self._print("After", title, name, op)

    def _text(self, op: Any) -> str:
        return self.show(_outermost(op) if self.module_scope else op)

    def _print(self, when: str, title: str, name: str, op: Any) -> None:
        heading = f"IR Dump {when} {title} ({name})"
        if self.module_scope and op.parent is not None:
            heading += f" ('{op.name}' operation{_symbol(op)})"
        print(f"// -----// {heading} //----- //\n{self._text(op).rstrip()}\n\n", file=self.stream, flush=True)


def _outermost(op: Any) -> Any:
    while op.parent is not None:
        op = op.parent.operation
    return op


def _symbol(op: Any) -> str:
    return f": @{op.attributes['sym_name'].value}" if "sym_name" in op.attributes else ""


@dataclasses.dataclass(slots=True)
class Timing(Instrumentation):
    """Wall time of each pass and phase, in seconds, in the order of first use."""

    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    started: float = dataclasses.field(default_factory=time.perf_counter)
    _pass_started: float = 0.0

    def before_pass(self, title: str, name: str, op: Any) -> None:
        self._pass_started = time.perf_counter()

    def after_pass(self, title: str, name: str, op: Any, failed: bool) -> None:
        self._add(f"{title} ({name})", time.perf_counter() - self._pass_started)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Adds the time spent inside the context to `name`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._add(name, time.perf_counter() - start)

    def _add(self, name: str, seconds: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def report(self) -> str:
        """Returns the times as a table in mlir-opt's format; the remainder of the total is `Rest`."""
        total = time.perf_counter() - self.started
        rows = [*self.seconds.items(), ("Rest", max(0.0, total - sum(self.seconds.values()))), ("Total", total)]
        rule = f"==={'-' * 73}==="
        lines = [rule, "... Execution time report ...".center(79).rstrip(), rule]
        lines += [f"  Total Execution Time: {total:.4f} seconds", "", "  ----Wall Time----  ----Name----"]
        lines += [f"  {seconds:8.4f} ({seconds / total:6.1%})  {name}" for name, seconds in rows]
        return "\n".join(lines) + "\n"
