# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of running pipelines from Python."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import pytest

import mlir_shard
from mlir_shard.dialects.contexts import create_context
from mlir_shard.host import ir
from mlir_shard.passes.diagnostic import Diagnostic
from mlir_shard.passes.instrumentation import Instrumentation, PrintIR, Selection, Timing
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.passes.resolution import PipelineError
from mlir_shard.passes.runner import run

TEXT = """\
func.func @first(%a: i32) -> i32 {
  %x = arith.constant 1 : i32
  %y = arith.constant 1 : i32
  %s = arith.addi %x, %y : i32
  return %s : i32
}
func.func @second() {
  return
}
module @inner {
  func.func @third() {
    return
  }
}
"""

CONTEXT = create_context()


@pytest.fixture
def module() -> Any:
    return ir.Module.parse(TEXT, CONTEXT)


def symbol(op: Any) -> str:
    return op.attributes["sym_name"].value if "sym_name" in op.attributes else op.name


def calling(function: Callable[[Any], bool | None], on: str | None = "func.func", called: str = "calling-pass") -> Pass:
    class Calling(Pass):
        name = called
        anchor = on

        def run(self, op: Any) -> bool | None:
            return function(op)

    return register(Calling)()


def test_python_and_host_passes_at_any_nesting(module: Any) -> None:
    seen: list[tuple[str, int]] = []

    def count(op: Any) -> None:
        seen.append((symbol(op), len(op.regions[0].blocks[0].operations)))

    register(type(calling(count, None)))
    run(
        module,
        "builtin.module(calling-pass,func.func(calling-pass,cse,calling-pass,canonicalize),"
        "builtin.module(func.func(calling-pass)),any(calling-pass))",
    )
    assert seen == [
        ("builtin.module", 3),
        # Each function goes through all passes of a nest before the next one does.
        ("first", 4),
        ("first", 3),
        ("second", 1),
        ("second", 1),
        ("third", 1),
        ("first", 2),
        ("second", 1),
        ("inner", 1),
    ]


def test_one_pass_and_lists(module: Any) -> None:
    seen: list[str] = []
    one = calling(lambda op: seen.append(symbol(op)))
    mlir_shard.run(module, one)
    mlir_shard.run(module, [one, "symbol-dce", "func.func(calling-pass)"])
    assert seen == ["first", "second"] * 3


def test_on_an_operation(module: Any) -> None:
    seen: list[str] = []
    one = calling(lambda op: seen.append(symbol(op)))
    first = module.body.operations[0]
    run(first, [one, "cse"])
    run(first, "func.func(calling-pass,canonicalize)")
    assert seen == ["first", "first"]
    assert [op.operation.name for op in first.regions[0].blocks[0].operations] == ["arith.constant", "func.return"]


def test_the_context_is_entered(module: Any) -> None:
    def annotate(op: Any) -> None:
        op.attributes["seen"] = ir.StringAttr.get("here")
        assert ir.Location.current == op.location

    run(module, calling(annotate))
    assert [str(op.attributes["seen"]) for op in list(module.body.operations)[:2]] == ['"here"', '"here"']


def test_the_anchor_has_to_fit(module: Any) -> None:
    with pytest.raises(PipelineError, match=r"runs on func.func, not on builtin.module: write builtin.module\(func"):
        run(module, "func.func(cse)")


def failure(module: Any, pipeline: Any) -> tuple[Diagnostic, ...]:
    with pytest.raises(PassFailure) as failed:
        run(module, pipeline)
    return failed.value.diagnostics


def test_a_pass_that_gives_up(module: Any) -> None:
    def give_up(op: Any) -> None:
        raise PassFailure("no way", notes=[("because of this", op.regions[0].blocks[0].operations[0])])

    after: list[str] = []
    diagnostics = failure(module, [calling(give_up), calling(lambda op: after.append("ran"), None, "later-pass")])
    # The first pass runs on both functions, and the later pass does not run.
    assert [(one.message, one.position.line) for one in diagnostics if one.position] == [("no way", 1), ("no way", 7)]
    assert [(one.message, one.position.line) for one in diagnostics[0].notes if one.position] == [
        ("because of this", 2)
    ]
    assert after == []


def test_where_a_failure_is(module: Any) -> None:
    def give_up(op: Any) -> None:
        raise PassFailure("here", ir.Location.file("other.mlir", 3, 4))

    assert str(failure(module, calling(give_up, "builtin.module"))[0]) == "other.mlir:3:4: error: here"


def test_an_error_diagnostic_fails_the_pass(module: Any) -> None:
    def emit(op: Any) -> None:
        op.location.emit_error("something is wrong")

    assert [one.message for one in failure(module, calling(emit))] == ["something is wrong"] * 2


def test_a_pipeline_inside_a_pass(module: Any) -> None:
    def give_up(op: Any) -> None:
        raise PassFailure("deep down", op)

    inner = calling(give_up)
    (first, _) = failure(module, calling(lambda op: run(op, inner), "builtin.module", "outer-pass"))
    assert first.message == "deep down"
    assert first.position is not None and first.position.line == 1


def test_failing_without_a_word(module: Any) -> None:
    def give_up(op: Any) -> None:
        raise PassFailure

    assert failure(module, calling(give_up, "builtin.module"))[0].message == "pass 'calling-pass' failed"


def test_an_exception_names_pass_and_line(module: Any) -> None:
    def crash(op: Any) -> None:
        raise KeyError("missing")

    (diagnostic,) = failure(module, calling(crash))
    assert diagnostic.message == "pass 'calling-pass' raised KeyError: 'missing'"
    assert diagnostic.position is not None
    with open(__file__) as source:
        assert source.read().splitlines()[diagnostic.position.line - 1].strip() == 'raise KeyError("missing")'
    (note,) = diagnostic.notes
    assert note.message == "raised while the pass ran on this 'func.func'"
    assert note.position is not None and note.position.line == 1


def test_an_unhandled_refusal_of_the_host(module: Any) -> None:
    def parse(op: Any) -> None:
        ir.Module.parse("func.func @")

    diagnostics = failure(module, calling(parse, "builtin.module"))
    assert diagnostics[0].position is not None and diagnostics[0].position.column == 12
    assert diagnostics[0].notes[-1].message == "pass 'calling-pass' does not handle this error"


def test_a_handled_refusal_of_the_host(module: Any) -> None:
    def parse(op: Any) -> None:
        with pytest.raises(ir.MLIRError):
            ir.Module.parse("func.func @")

    run(module, calling(parse, "builtin.module"))


def test_verification_after_each_pass(module: Any) -> None:
    one = calling(lambda op: op.attributes.__delitem__("sym_name"))
    diagnostics = failure(module, one)
    assert "sym_name" in diagnostics[0].message
    assert diagnostics[0].notes[-1].message == "the operation is not valid after pass 'calling-pass'"
    run(ir.Module.parse(TEXT, CONTEXT), one, verify_each=False)


def test_what_is_unchanged_is_not_verified_again(module: Any) -> None:
    def spoil(op: Any) -> bool:
        del op.attributes["sym_name"]
        return False

    run(module, calling(spoil))
    with pytest.raises(ir.MLIRError):
        module.operation.verify()


def test_a_host_pass_that_fails() -> None:
    context = create_context(allow_unregistered=True)
    module = ir.Module.parse('func.func @f() {\n  "my.op"() : () -> tensor<4xf32>\n  return\n}', context)
    (diagnostic,) = failure(module, "builtin.module(cse,one-shot-bufferize)")
    assert "op was not bufferized" in diagnostic.message
    assert diagnostic.position is not None and diagnostic.position.line == 2


def test_diagnostics_are_reported_as_they_come(module: Any) -> None:
    reported: list[str] = []

    def emit(op: Any) -> None:
        op.location.emit_error(f"wrong in {symbol(op)}")
        reported.append("pass ends")

    with pytest.raises(PassFailure):
        run(module, calling(emit), report=lambda one: reported.append(one.message))
    assert reported == ["wrong in first", "pass ends", "wrong in second", "pass ends"]


def test_an_interrupt_is_passed_on(module: Any) -> None:
    def interrupt(op: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(module, calling(interrupt))


def test_an_exception_of_the_reporter_is_passed_on(module: Any) -> None:
    def stop(one: Diagnostic) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(module, calling(lambda op: op.location.emit_error("x")), report=stop)


class Recorder(Instrumentation):
    def __init__(self) -> None:
        self.seen: list[tuple[str, ...]] = []

    def before_pass(self, title: str, name: str, op: Any) -> None:
        self.seen.append(("before", title, name, symbol(op)))

    def after_pass(self, title: str, name: str, op: Any, failed: bool) -> None:
        self.seen.append(("failed" if failed else "after", title, name, symbol(op)))


def test_instrumentation_sees_every_pass(module: Any) -> None:
    def fail_second(op: Any) -> None:
        if symbol(op) == "second":
            raise PassFailure("no")

    recorder = Recorder()
    with pytest.raises(PassFailure):
        run(module, ["cse", calling(fail_second), "func.func(canonicalize)"], instrumentations=[recorder])
    assert recorder.seen == [
        ("before", "CSE", "cse", "builtin.module"),
        ("after", "CSE", "cse", "builtin.module"),
        ("before", "Calling", "calling-pass", "first"),
        ("after", "Calling", "calling-pass", "first"),
        ("before", "Calling", "calling-pass", "second"),
        ("failed", "Calling", "calling-pass", "second"),
    ]


def print_ir(module: Any, pipeline: Any, **settings: Any) -> list[str]:
    stream = io.StringIO()
    printer = PrintIR(lambda op: f"<{symbol(op)}>", stream, **settings)
    with contextlib.suppress(PassFailure):
        run(module, pipeline, instrumentations=[printer])
    return stream.getvalue().split("\n\n\n")[:-1]


def test_print_ir(module: Any) -> None:
    pipeline = "builtin.module(func.func(cse),canonicalize)"
    everything = Selection(everything=True)
    assert print_ir(module, pipeline, before=Selection(frozenset({"canonicalize"})), after=everything) == [
        "// -----// IR Dump After CSE (cse) //----- //\n<first>",
        "// -----// IR Dump After CSE (cse) //----- //\n<second>",
        "// -----// IR Dump Before Canonicalize (canonicalize) //----- //\n<builtin.module>",
        "// -----// IR Dump After Canonicalize (canonicalize) //----- //\n<builtin.module>",
    ]
    assert print_ir(module, pipeline, before=everything, module_scope=True)[:2] == [
        "// -----// IR Dump Before CSE (cse) ('func.func' operation: @first) //----- //\n<builtin.module>",
        "// -----// IR Dump Before CSE (cse) ('func.func' operation: @second) //----- //\n<builtin.module>",
    ]
    assert print_ir(module, pipeline, after=everything, only_changes=True) == []


def test_print_ir_after_failure(module: Any) -> None:
    def give_up(op: Any) -> None:
        raise PassFailure("no")

    one = calling(give_up, "builtin.module")
    heading = "// -----// IR Dump After Calling Failed (calling-pass) //----- //\n<builtin.module>"
    assert print_ir(module, ["cse", one], after_failures=True) == [heading]
    assert print_ir(module, ["cse", one], after=Selection(frozenset({"calling-pass"}))) == [heading]


def test_timing(module: Any) -> None:
    timing = Timing()
    with timing.phase("Parser"):
        pass
    run(module, "builtin.module(func.func(cse),canonicalize)", instrumentations=[timing])
    assert list(timing.seconds) == ["Parser", "CSE (cse)", "Canonicalize (canonicalize)"]
    lines = timing.report().splitlines()
    assert lines[1].strip() == "... Execution time report ..."
    assert [line.split(")", 1)[1].strip() for line in lines[6:]] == [*timing.seconds, "Rest", "Total"]
    assert lines[-1].split()[1:3] == ["(100.0%)", "Total"]
