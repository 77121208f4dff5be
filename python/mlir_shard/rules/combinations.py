# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How what devices have reduced of their blocks is put together, where sdy has no word for it.

Partial values in sdy are sums, maxima or minima. An op may reduce with something else, or its results each with
another; upstream's `shard.all_reduce` has products and bitwise operations too, and a reduction of StableHLO, which may
be done in any tree, can be done again with what every device has got.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_shard.host import ir
from mlir_shard.rules.linalg import is_structured

SUM, PRODUCT, XOR = "sum", "product", "bitwise_xor"

_BITWISE = ("bitwise_and", "bitwise_or", XOR)
_COMBINERS = {
    "arith.addf": SUM,
    "arith.addi": SUM,
    "arith.andi": "bitwise_and",
    "arith.maximumf": "max",
    "arith.maxnumf": "max",
    "arith.maxsi": "max",
    "arith.minimumf": "min",
    "arith.minnumf": "min",
    "arith.minsi": "min",
    "arith.mulf": PRODUCT,
    "arith.muli": PRODUCT,
    "arith.ori": "bitwise_or",
    "arith.xori": XOR,
    "stablehlo.add": SUM,
    "stablehlo.and": "bitwise_and",
    "stablehlo.maximum": "max",
    "stablehlo.minimum": "min",
    "stablehlo.multiply": PRODUCT,
    "stablehlo.or": "bitwise_or",
    "stablehlo.xor": XOR,
}
_TOSA = {
    "tosa.reduce_all": "bitwise_and",
    "tosa.reduce_any": "bitwise_or",
    "tosa.reduce_product": PRODUCT,
}
_REDUCE = "stablehlo.reduce"
NEUTRAL = {SUM: 0, PRODUCT: 1, XOR: 0}
"""What an initial value is on all devices but one, for kinds to which it would make a difference."""


@dataclass(frozen=True, slots=True)
class Combination:
    """`kinds` are the reductions of `shard.all_reduce`, one for each result; without them the op does it again."""

    kinds: tuple[str, ...] = ()


def may_combine(name: str) -> bool:
    """Whether `combination_of` may know an op of this name."""
    return name in _TOSA or name == _REDUCE or name.startswith("linalg.")


def combination_of(op: Any) -> Combination | None:
    """How partial results of an op are put together; None where they cannot be."""
    op = op.operation
    if op.name in _TOSA:
        return _of_kinds(op, (_TOSA[op.name],))
    if op.name == _REDUCE:
        return _of_kinds(op, kinds_of_body(op, 0)) or Combination()
    if is_structured(op) and len(op.results):
        return _of_kinds(op, kinds_of_body(op, len(op.operands) - len(op.results)))
    return None


def _of_kinds(op: Any, kinds: tuple[str | None, ...]) -> Combination | None:
    found = tuple(
        kind for kind, result in zip(kinds, op.results, strict=True) if kind is not None and _is_reduced(result, kind)
    )
    return Combination(found) if len(found) == len(op.results) else None


def _is_reduced(result: Any, kind: str) -> bool:
    """Whether the collective does on this type what the op does."""
    element = result.type.element_type
    if isinstance(element, ir.IntegerType):
        return element.is_signless and (element.width > 1 or kind in _BITWISE)
    return isinstance(element, ir.FloatType) and kind not in _BITWISE


def kinds_of_body(op: Any, first: int) -> tuple[str | None, ...]:
    """What a body combines each argument from the first of its outputs on with something else by, None where it does
    another thing."""
    block = op.regions[0].blocks[0]
    last = block.operations[len(block.operations) - 1].operation
    outputs = list(block.arguments)[first : first + len(op.results)]
    return tuple(_kind(value, output) for value, output in zip(last.operands, outputs, strict=True))


def _kind(value: Any, output: Any) -> str | None:
    if isinstance(value.owner, ir.Block):
        return None
    combiner = value.owner.operation
    uses = list(output.uses)
    is_combined = len(uses) == 1 and uses[0].owner.operation == combiner and len(combiner.operands) == 2
    return _COMBINERS.get(combiner.name) if is_combined else None
