# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The way of a module through shard-opt: parsed, verified, through the passes, printed."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import Any

from mlir_shard import asm
from mlir_shard.dialects import verification
from mlir_shard.dialects.context import create_context
from mlir_shard.passes import diagnostic, runner
from mlir_shard.passes.instrumentation import Instrumentation, PrintIR, Selection, Timing
from mlir_shard.passes.registry import PassFailure
from mlir_shard.passes.resolution import Nest
from mlir_shard.passes.runner import Report
from mlir_shard.tools.command_line import Arguments
from mlir_shard.tools.diagnostics import Console
from mlir_shard.tools.source import Source
from mlir_shard.tools.verify_diagnostics import Verifier


class Session:
    """What the parts of an input have in common."""

    def __init__(self, arguments: Arguments, pipeline: Nest, console: Console, timing: Timing) -> None:
        self.succeeded = True
        self._arguments = arguments
        self._pipeline = pipeline
        self._console = console
        self._timing = timing
        self._context = create_context(allow_unregistered=arguments.allow_unregistered_dialect)
        self._instrumentations = self._make_instrumentations()

    def process(self, part: Source) -> str:
        """The module of a part after all passes, as text; empty where there was an error."""
        mode = self._arguments.verify_diagnostics
        if mode is None:
            text = self._transform(part, self._console.report)
            self.succeeded &= text is not None
            return text or ""
        verifier = Verifier(part, only_expected=mode == "only-expected")
        text = self._transform(part, verifier.report)
        for problem in verifier.problems():
            self.succeeded = False
            self._console.report(problem)
        return text or ""

    def _transform(self, part: Source, report: Report) -> str | None:
        try:
            with self._timing.phase("Parser"), _reported(self._context, report):
                module = asm.parse_module(part.text, self._context, part.name)
                if not verification.verify(module.operation):
                    return None
            runner.run(
                module,
                self._pipeline,
                verify_each=self._arguments.verify_each,
                instrumentations=self._instrumentations,
                report=report,
            )
        except asm.ParseError as error:
            for one in error.diagnostics:
                report(diagnostic.from_host(one))
            return None
        except PassFailure:
            return None
        with self._timing.phase("Output"), _reported(self._context, report):
            return self._show(module.operation, assume_verified=self._arguments.verify_each)

    def _show(self, op: Any, assume_verified: bool = False) -> str:
        text = asm.print_operation(
            op,
            generic=self._arguments.print_op_generic,
            debug_info=self._arguments.print_debuginfo or self._arguments.pretty_debuginfo,
            pretty_debug_info=self._arguments.pretty_debuginfo,
            local_scope=self._arguments.print_local_scope,
            large_elements_limit=self._arguments.elide_elementsattrs_if_larger,
            assume_verified=assume_verified,
        )
        return text if text.endswith("\n") else f"{text}\n"

    def _make_instrumentations(self) -> list[Instrumentation]:
        arguments = self._arguments
        found: list[Instrumentation] = [self._timing] if arguments.timing else []
        before = Selection(frozenset(arguments.print_ir_before), arguments.print_ir_before_all)
        after_all = arguments.print_ir_after_all or (arguments.print_ir_after_change and not arguments.print_ir_after)
        after = Selection(frozenset(arguments.print_ir_after), after_all)
        if before or after or arguments.print_ir_after_failure:
            found.append(
                PrintIR(
                    self._show,
                    sys.stderr,
                    before,
                    after,
                    arguments.print_ir_after_change,
                    arguments.print_ir_after_failure,
                    arguments.print_ir_module_scope,
                )
            )
        return found


def _reported(context: Any, report: Report) -> AbstractContextManager[None]:
    """Hands the diagnostics of a context to `report`."""

    def handle(one: Any) -> bool:
        report(diagnostic.from_host(one))
        return True

    return diagnostic.handled(context, handle)
