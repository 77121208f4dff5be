# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types, the kinds of reductions, and the error of programs that are refused."""

from __future__ import annotations

import re

_INTEGER = re.compile(r"(?:[us]?i(\d+)|index)$")
_INDEX_BITS = 64


def width(type_: str) -> int:
    """Returns the bit width of an integer type; 0 for booleans and other types."""
    found = _INTEGER.match(type_)
    return 0 if found is None or found[1] == "1" else int(found[1] or _INDEX_BITS)


def fits(type_: str, low: int, high: int) -> bool:
    """Returns whether numbers from `low` to `high` fit an integer type, so that arithmetic on them does not wrap."""
    bits = width(type_)
    if not bits:
        return False
    return low >= 0 and high < 2**bits if type_[0] == "u" else -(2 ** (bits - 1)) <= low and high < 2 ** (bits - 1)


KINDS = {f"stablehlo.{name}": name for name in ("add", "multiply", "maximum", "minimum", "and", "or", "xor")} | {
    "tosa.add": "add",
    "tosa.mul": "multiply",
    "arith.addf": "add",
    "arith.addi": "add",
    "arith.mulf": "multiply",
    "arith.muli": "multiply",
    "arith.maximumf": "maximum",
    "arith.maxsi": "maximum",
    "arith.minimumf": "minimum",
    "arith.minsi": "minimum",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
    "arith.maxnumf": "maxnum",
    "arith.minnumf": "minnum",
    "arith.maxui": "maxui",
    "arith.minui": "minui",
}
"""The kinds of reductions by the ops that combine two numbers."""


IDEMPOTENT = frozenset(("maximum", "minimum", "and", "or", "maxnum", "minnum", "maxui", "minui"))
# The operands that do not change a reduction.
NEUTRAL = {
    "add": ("0", "0.0", "-0.0"),
    "multiply": ("1", "1.0"),
    "maximum": ("-inf",),
    "minimum": ("inf",),
    "or": ("False", "0"),
    "xor": ("False", "0"),
    "and": ("True", "-1"),
}
ZEROS = ("0", "0.0", "False")


class NotCertified(Exception):
    """Raised for an op without a lemma, or whose operands match no lemma. `lemma` names the lemma that failed."""

    def __init__(self, message: str, lemma: str = "") -> None:
        super().__init__(message)
        self.message, self.lemma = message, lemma
