# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs have the same output in this project and in Shardy after every pass, except for Shardy's mistakes.

A full run is `pytest test/differential --programs 2000 --seed 0`, or `python -m differential`, which prints more.
"""

from __future__ import annotations

import pytest
from jaxlib.mlir.dialects import stablehlo

from differential import campaign
from differential.compare import Comparison
from differential.generate import program
from differential.sides import Here, Shardy

# Ops that programs do not contain: those without a rule in Shardy, and `if`, through which values flow only here.
_LEFT_OUT = frozenset(
    f"stablehlo.{name}"
    for name in [
        "after_all",
        "async_done",
        "async_start",
        "batch_norm_grad",
        "batch_norm_training",
        "broadcast",
        "composite",
        "create_token",
        "dynamic_broadcast_in_dim",
        "dynamic_conv",
        "dynamic_gather",
        "dynamic_iota",
        "dynamic_pad",
        "dynamic_reshape",
        "einsum",
        "get_dimension_size",
        "get_tuple_element",
        "if",
        "infeed",
        "map",
        "outfeed",
        "partition_id",
        "real_dynamic_slice",
        "recv",
        "replica_id",
        "rng",
        "send",
        "set_dimension_size",
        "torch_index_select",
        "tuple",
        "unary_einsum",
        "uniform_dequantize",
        "uniform_quantize",
    ]
)


def test_all_passes_give_what_shardy_gives(pytestconfig: pytest.Config) -> None:
    with Shardy() as shardy:
        comparison = Comparison(shardy, Here())
        seed, count = pytestconfig.getoption("--seed"), pytestconfig.getoption("--programs")
        report = campaign.run(comparison, seed, range(count))
        print(report.summary())
        # A program that is not a valid module, or that Shardy refuses, is not compared.
        assert report.tally.invalid <= count // 20
        assert not report.findings, (
            report.findings[0].report() + "\n" + campaign.smallest(report.findings[0], comparison)
        )


def test_a_quick_run_compares_single_passes_where_the_pipeline_differs() -> None:
    # The pipeline differs for the first program independently of Shardy's memory: it does not abort.
    programs = range(23, 25)
    with Shardy() as shardy:
        full, quick = (campaign.run(Comparison(shardy, Here()), 0, programs, quick=one) for one in (False, True))
    assert full.tally.programs == quick.tally.programs == len(programs)
    assert quick.explained.total() > 0
    assert len(programs) < quick.tally.passes.total() < full.tally.passes.total()
    assert not quick.findings


def test_shardy_goes_on_after_an_abort() -> None:
    with Shardy() as shardy:
        # Nested lists that are too deep for any stack.
        texts = (f"module attributes {{a = {'[' * 1_000_000}", "module {}", "nothing")
        aborted, accepted, invalid = (shardy.run(text, "builtin.module()") for text in texts)
    assert (aborted.text, aborted.error) == (None, "aborted")
    assert accepted.lines == ["module {", "}"]
    assert invalid.error.startswith("invalid")


def test_programs_have_every_op_that_has_a_rule() -> None:
    names = {str(getattr(one, "OPERATION_NAME", "")) for one in vars(stablehlo).values()}
    generated = set().union(*(program(f"0/{index}").op_names() for index in range(400)))
    assert {name for name in names if name.startswith("stablehlo.")} - generated <= _LEFT_OUT
