# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of amounts with units, as they are parsed from options and printed."""

from __future__ import annotations

import pytest

from mlir_shard.explain.quantities import QUANTITIES, amount_text, read_limits, size_text

NAMES = tuple(QUANTITIES)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("bytes=10", 10),
        ("bytes=10MiB", 10 * 2**20),
        ("bytes=1.5GB", 1.5e9),
        ("bytes= 2 kib", 2048),
        ("bytes=3TB", 3e12),
        ("bytes=1e3B", 1000),
        ("memory=1GiB", 2**30),
        ("time=20ms", 0.02),
        ("time=1.5s", 1.5),
        ("time=3us", 3e-6),
        ("time=3µs", 3e-6),
        ("collectives=20", 20),
    ],
)
def test_amounts_have_units(text: str, amount: float) -> None:
    (limit,) = read_limits(text, NAMES).values()
    assert limit.amount == pytest.approx(amount)
    assert not limit.is_relative


def test_several_limits_are_between_commas() -> None:
    found = read_limits("bytes=1MB, time=5%,", NAMES, may_be_relative=True)
    assert list(found) == ["bytes", "time"]
    assert found["time"].of(200.0) == pytest.approx(10.0)
    assert found["bytes"].of(200.0) == 1e6
    assert [one.text for one in found.values()] == ["1MB", "5%"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("byte=1", "'byte' is not a quantity; did you mean 'bytes'?"),
        ("weight=1", "'weight' is not a quantity: expected one of bytes, memory, time, collectives"),
        ("bytes", "'bytes' has no amount: expected bytes=10MiB or 1.5GB"),
        ("bytes=", "'' is not an amount of bytes: expected 10MiB or 1.5GB"),
        ("bytes=-1", "'-1' is not an amount of bytes"),
        ("bytes=1ms", "'1ms' is not an amount of bytes"),
        ("bytes=5%", "'5%' is not an amount of bytes"),
        ("bytes=1e999", "'1e999' is not an amount of bytes"),
        ("time=1MB", "'1MB' is not an amount of time: expected 20ms or 1.5s"),
        ("collectives=3B", "'3B' is not an amount of collectives: expected 20"),
        ("bytes=1,bytes=2", "'bytes' is given twice"),
        (" , ", "it is empty"),
    ],
)
def test_other_texts_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint.replace("?", r"\?").split(" or ")[0]):
        read_limits(text, NAMES)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (-1536, "-1.50 KiB"), (171 * 2**20, "171 MiB")],
)
def test_sizes_have_three_digits(size: int, text: str) -> None:
    assert size_text(size) == text
    assert amount_text("bytes", size) == text


def test_times_may_be_negative() -> None:
    assert amount_text("time", -2.5e-6) == "-2.5 µs"
    assert amount_text("collectives", 1234) == "1,234"
