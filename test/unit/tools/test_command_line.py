# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the command line of shard-opt."""

from __future__ import annotations

import pytest

from mlir_shard.tools.command_line import Arguments, PassFlag, UsageError, parse


def test_defaults() -> None:
    assert parse([]) == Arguments()


@pytest.mark.parametrize("dashes", ["-", "--"])
def test_one_or_two_dashes(dashes: str) -> None:
    found = parse(
        [f"{dashes}o", "out.mlir", f"{dashes}verify-each=0", f"{dashes}cse", "in.mlir", f"{dashes}mlir-timing"]
    )
    assert found == Arguments(
        input="in.mlir",
        output="out.mlir",
        verify_each=False,
        timing=True,
        passes=(PassFlag("cse", "", f"{dashes}cse"),),
    )


def test_passes_keep_their_order_and_options() -> None:
    found = parse(["--b=x=1", "-a", "in.mlir", "--b=x=2 y={p,q}", "--c='z=1'"])
    assert [(one.name, one.options) for one in found.passes] == [
        ("b", "x=1"),
        ("a", ""),
        ("b", "x=2 y={p,q}"),
        ("c", "'z=1'"),
    ]


def test_values() -> None:
    argv = ["--load", "a.py", "--load=b.py", "--mlir-print-ir-after=a,b", "--mlir-print-ir-after=c", "-"]
    argv += ["--split-input-file", "--mlir-elide-elementsattrs-if-larger=0", "--pass-pipeline", "any(cse)"]
    found = parse([*argv, "--verify-diagnostics"])
    assert found == Arguments(
        input="-",
        load=("a.py", "b.py"),
        print_ir_after=("a", "b", "c"),
        split_input_file="// -----",
        elide_elementsattrs_if_larger=0,
        pass_pipeline="any(cse)",
        verify_diagnostics="all",
    )
    assert parse(["--split-input-file=// %%"]).split_input_file == "// %%"
    assert parse(["--verify-diagnostics=only-expected"]).verify_diagnostics == "only-expected"


def test_two_dashes_alone_are_ignored() -> None:
    assert parse(["in.mlir", "--", "--cse"]) == parse(["in.mlir", "--cse"])


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["a", "b"], "more than one input file: 'a' and 'b'"),
        (["-o"], "'-o' needs a value: -o=FILE"),
        (["-o", "a", "-o", "b"], "'-o' is given twice, with 'a' and 'b'"),
        (["--verify-each=maybe"], "'--verify-each' expects true or false, not 'maybe'"),
        (
            ["--mlir-elide-elementsattrs-if-larger=-1"],
            "'--mlir-elide-elementsattrs-if-larger' expects a non-negative number, not '-1'",
        ),
        (["--verify-diagnostics=some"], "'--verify-diagnostics' expects all or only-expected, not 'some'"),
        (
            ["--cse", "--pass-pipeline=x"],
            "'--cse' is not allowed with --pass-pipeline: add the pass to the pipeline",
        ),
    ],
)
def test_refused(argv: list[str], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(argv)
    assert str(refused.value) == message
