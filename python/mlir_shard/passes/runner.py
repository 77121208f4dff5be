# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Execution of pipelines: passes in Python here, sequences of host passes in the host's pass manager.

Python's recursion limit is raised while passes run, for programs with deeply nested regions.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mlir_shard import _native
from mlir_shard.dialects.contexts import prepare
from mlir_shard.dialects.mesh_definitions import reading_meshes_once
from mlir_shard.dialects.registered_function import InterfaceError
from mlir_shard.dialects.verified import verified_in
from mlir_shard.garbage import fewer_collections
from mlir_shard.host import ir, passmanager
from mlir_shard.ir.operation_list import capsules_of
from mlir_shard.passes import diagnostic, host_passes, resolution
from mlir_shard.passes.analyses import Analyses, sharing_analyses
from mlir_shard.passes.diagnostic import Diagnostic, location_of, reported
from mlir_shard.passes.host_passes import HostPass
from mlir_shard.passes.instrumentation import Instrumentation
from mlir_shard.passes.registry import Changes, Pass, PassFailure, sharing
from mlir_shard.passes.resolution import ANY, Nest, Step, step_text
from mlir_shard.sharding.mesh import TooManyDevicesError

# Enough for about 600 nested regions, and within a stack of 8 MiB on every supported Python.
_FRAMES = 5000
# The least nesting depth that is reported as the cause of a failure.
_DEEP = 64


@contextlib.contextmanager
def deep_recursion() -> Iterator[None]:
    """Raises Python's recursion limit for passes that run in the context."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def too_deep(root: Any) -> tuple[Any, int] | None:
    """Returns the most deeply nested operation below `root` and the number of regions around it. None if few."""
    found, most = root, 0
    left = [(root, 0)]
    while left:
        op, depth = left.pop()
        if depth > most:
            found, most = op, depth
        for region in op.regions:
            for block in region.blocks:
                left += [(inner.operation, depth + 1) for inner in block.operations]
    return (found, most) if most >= _DEEP else None


Report = Callable[[Diagnostic], None]


def run(
    target: Any,
    pipeline: str | Pass | Sequence[Pass | str] | Nest,
    *,
    verify_each: bool = True,
    instrumentations: Sequence[Instrumentation] = (),
    report: Report | None = None,
) -> None:
    """Runs passes on an `ir.Module` or an operation, in place.

    Args:
        target: the module or operation that the passes run on, of any context.
        pipeline: pipeline text (`"builtin.module(canonicalize,func.func(cse))"`), a pass, or a list of passes and
            texts, in which a pass that runs on another operation than the target is nested in it automatically.
        verify_each: verify the operation after each pass.
        instrumentations: hooks around each pass.
        report: called with each diagnostic when it is emitted. Without it the errors are in the exception, remarks and
            warnings of the host go to the handlers of the context, and those of passes in Python to standard error.

    Raises:
        PipelineError: the pipeline cannot be run on the target; nothing has run.
        PassFailure: a pass failed; `diagnostics` holds the errors, and the target is as the pass left it.
    """
    op = target.operation
    if isinstance(pipeline, str):
        tree = resolution.from_text(pipeline)
    elif isinstance(pipeline, Nest):
        tree = pipeline
    else:
        passes = [pipeline] if isinstance(pipeline, Pass) else pipeline
        tree = resolution.from_passes(passes, op.name)
    resolution.check_runs_on(tree, op.name, pipeline if isinstance(pipeline, str) else "")
    prepare(op.context)
    one_run = _Run(op, verify_each, tuple(instrumentations), report)
    with (
        fewer_collections(),
        diagnostic.handled(op.context, one_run.handle),
        sharing(),
        sharing_analyses(one_run.analyses),
        deep_recursion(),
    ):
        succeeded = one_run.steps(op, tree)
    if not succeeded:
        raise PassFailure("\n".join(map(str, one_run.errors)), op, diagnostics=tuple(one_run.errors))


class _Run:
    def __init__(
        self, root: Any, verify_each: bool, instrumentations: tuple[Instrumentation, ...], report: Report | None
    ) -> None:
        self.root = root
        self.context = root.context
        self.verify_each = verify_each
        self.instrumentations = instrumentations
        self.report = report
        self.errors: list[Diagnostic] = []
        self.make_note: Callable[[], Diagnostic] | None = None
        self.is_broken = False
        self.schedulable: dict[str, bool] = {}
        self._verified = verified_in(self.context)
        self.analyses = Analyses(root)

    def handle(self, reported: Any) -> bool:
        is_error = reported.severity == ir.DiagnosticSeverity.ERROR
        if is_error or self.report:
            copied = diagnostic.from_host(reported)
            notes = (*copied.notes, self.make_note()) if is_error and self.make_note else copied.notes
            self._emit(dataclasses.replace(copied, notes=notes))
        return is_error or self.report is not None

    def _emit(self, one: Diagnostic) -> None:
        if one.severity == "error":
            self.errors.append(one)
        if self.report:
            self.report(one)

    def steps(self, op: Any, nest: Nest) -> bool:
        """Runs the steps of a nest on one operation. Stops at the first failed pass, and then returns False."""
        for is_host, group in itertools.groupby(nest.steps, self._is_left_to_host):
            steps = list(group)
            if is_host:
                # Verification after each pass attributes an error to the pass that caused it.
                alone = [[one] for step in steps for one in _alone(step)] if self.verify_each else [steps]
                succeeded = all(self._run_host(op, nest.anchor, one) for one in alone)
            else:
                succeeded = all(self._run_step(op, nest.anchor, step) for step in steps)
            if not succeeded:
                return False
        return True

    def _is_left_to_host(self, step: Step) -> bool:
        """Returns whether the host can run a step in a group. With instrumentations, each pass runs by itself."""
        if self.instrumentations:
            return False
        return all(map(self._is_left_to_host, step.steps)) if isinstance(step, Nest) else isinstance(step, HostPass)

    def _run_step(self, op: Any, anchor: str, step: Step) -> bool:
        if isinstance(step, Nest):
            return self._run_nest(op, step)
        title = host_passes.class_name(step.name) if isinstance(step, HostPass) else type(step).__name__
        for one in self.instrumentations:
            one.before_pass(title, step.name, op)
        succeeded = self._run_host(op, anchor, [step]) if isinstance(step, HostPass) else self._run_python(op, step)
        for one in reversed(self.instrumentations):
            one.after_pass(title, step.name, op, not succeeded)
        return succeeded

    def _run_nest(self, op: Any, nest: Nest) -> bool:
        """Runs a nest on every operation that it applies to, also after a failure, so that each can report errors."""
        succeeded = True
        # A pass changes nothing outside of the operation that it runs on.
        meshes = reading_meshes_once() if nest.anchor == "func.func" else contextlib.nullcontext()
        with self._verified.keeping_symbols(op), meshes:
            for child in self._children(op, nest):
                succeeded &= self.steps(child, nest)
                if self.is_broken:
                    break
        return succeeded

    def _children(self, op: Any, nest: Nest) -> list[Any]:
        inside = [child.operation for region in op.regions for block in region for child in block.operations]
        if nest.anchor != ANY:
            return [child for child in inside if child.name == nest.anchor]
        anchors = {step.anchor for step in nest.steps if not isinstance(step, Nest) and step.anchor is not None}
        return [child for child in inside if anchors <= {child.name} and self._can_schedule(child)]

    def _can_schedule(self, op: Any) -> bool:
        """Returns whether passes can run on operations of this name: the host accepts those isolated from above."""
        if op.name not in self.schedulable:
            manager = passmanager.PassManager(ANY, op.context)
            manager.add(lambda op, _: None)
            try:
                manager.run(op)
                self.schedulable[op.name] = True
            except ir.MLIRError:
                self.schedulable[op.name] = False
        return self.schedulable[op.name]

    def _run_host(self, op: Any, anchor: str, group: list[Step]) -> bool:
        errors = len(self.errors)
        text = ",".join(map(step_text, group))
        self.analyses.update(None, op)
        self._set_at_work(op, f"in {_passes_in_words(group)} on this '{op.name}'")
        try:
            with self._errors_to_handlers():
                host_passes.run(f"{anchor}({text})", op, verify_each=False)
        except ir.MLIRError as error:
            for one in error.error_diagnostics:
                self._emit(diagnostic.from_host(one))
            if len(self.errors) == errors:
                self._emit(diagnostic.at("error", f"{_passes_in_words(group)} failed", op.location))
            return False
        return self._verify(op, _passes_in_words(group))

    @contextlib.contextmanager
    def _errors_to_handlers(self) -> Iterator[None]:
        """Sends errors to handlers when they are emitted, instead of an exception at the end."""
        before = self.context.emit_error_diagnostics
        self.context.emit_error_diagnostics = True
        try:
            yield
        finally:
            self.context.emit_error_diagnostics = before

    def _run_python(self, op: Any, one: Pass) -> bool:
        if not self._may_apply(one):
            return True
        errors, location, op_name = len(self.errors), op.location, op.name
        changed: bool | Changes | None = None
        self._set_at_work(op, f"in pass '{one.name}' on this '{op_name}'")
        try:
            with self.context, location, reported(self.report):
                changed = one.run(op)
        except PassFailure as failure:
            self._emit_failure(failure, one, location, said_already=len(self.errors) > errors)
        except InterfaceError as error:
            self._emit(diagnostic.at("error", str(error), error.op.location))
        except ir.MLIRError as error:
            self._emit_unhandled(error, one)
        except TooManyDevicesError as error:
            self._emit(diagnostic.at("error", str(error), location))
        except (Exception, SystemExit) as exception:
            deepest = too_deep(op) if isinstance(exception, RecursionError) else None
            if deepest is not None:
                inner, depth = deepest
                message = f"'{inner.name}' op is nested in {depth} regions, too deep for pass '{one.name}'"
                self._emit(diagnostic.at("error", message, inner.location))
                return False
            # The pass has a bug, and the next operation would probably show it again.
            self.is_broken = True
            raised = diagnostic.of_exception(exception, f"pass '{one.name}' raised", _file_of(one))
            running = diagnostic.at("note", f"raised while the pass ran on this '{op_name}'", location)
            self._emit(dataclasses.replace(raised, notes=(running,)))
        self.analyses.update(changed, op)
        if len(self.errors) > errors:
            return False
        # As in the host, an unchanged operation is not verified again.
        return changed is False or self._verify(op, f"pass '{one.name}'", changed)

    def _set_at_work(self, op: Any, work: str) -> None:
        """Stores the current work for the report of a crash, if crashes are reported."""
        if _native.reports_crashes():
            _native.set_at_work(diagnostic.at("error", "", op.location).place_text, work)

    def _may_apply(self, one: Pass) -> bool:
        """Returns whether the root may contain something that a pass needs."""
        needs = type(one).needs
        return needs is None or self.analyses.contents().has_any(needs)

    def _emit_failure(self, failure: PassFailure, one: Pass, location: Any, said_already: bool) -> None:
        if failure.diagnostics:
            # The pass ran another pipeline.
            for each in failure.diagnostics:
                self._emit(each)
            return
        if not failure.message and said_already:
            return
        notes = tuple(diagnostic.at("note", text, location_of(where) or location) for text, where in failure.notes)
        message = failure.message or f"pass '{one.name}' failed"
        self._emit(diagnostic.at("error", message, location_of(failure.where) or location, notes))

    def _emit_unhandled(self, error: Any, one: Pass) -> None:
        """Emits an error of the host that a pass did not handle, with a note that has the line of the pass."""
        asked = diagnostic.of_exception(error, f"pass '{one.name}' raised", _file_of(one))
        note = Diagnostic("note", f"pass '{one.name}' does not handle this error", asked.position)
        reported = [diagnostic.from_host(each) for each in error.error_diagnostics]
        for each in reported:
            self._emit(dataclasses.replace(each, notes=(*each.notes, note)))
        if not reported:
            self._emit(asked)

    def _verify(self, op: Any, after: str, changed: bool | Changes | None = None) -> bool:
        if not self.verify_each:
            return True
        errors = len(self.errors)
        self._set_at_work(op, f"while it verified this '{op.name}' after {after}")
        note = f"the operation is not valid after {after}"
        self.make_note = functools.partial(diagnostic.at, "note", note, op.location)
        try:
            with self._errors_to_handlers(), contextlib.suppress(ir.MLIRError):
                if isinstance(changed, Changes):
                    ops, moved, attributed = map(capsules_of, (changed.ops, changed.moved, changed.attributed))
                    self._verified.verify_changed(op, ops, moved, attributed, changed.everywhere)
                else:
                    self._verified.verify(op)
        finally:
            self.make_note = None
        return len(self.errors) == errors


def _file_of(one: Pass) -> str | None:
    try:
        return inspect.getsourcefile(type(one))
    except TypeError:
        # Classes defined interactively have no file.
        return None


def _alone(step: Step) -> Iterator[Step]:
    """Splits a step into steps of one pass each, which is valid because the passes of a nest are independent."""
    if isinstance(step, Nest):
        for inner in itertools.chain.from_iterable(map(_alone, step.steps)):
            yield dataclasses.replace(step, steps=(inner,))
    else:
        yield step


def _passes_in_words(group: list[Step]) -> str:
    names = [step_text(step) for step in group]
    return f"pass '{names[0]}'" if len(names) == 1 else f"one of the passes '{','.join(names)}'"
