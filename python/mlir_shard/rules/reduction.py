# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reductions of ops and their neutral elements, by which partial results of a sharded reduction are combined."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from mlir_shard.dialects.registered_function import RegistrationError, check_op_names, registered_names
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import terminator
from mlir_shard.ir.op_names import op_names
from mlir_shard.ir.values import defining_op
from mlir_shard.rules.linalg_loops import is_structured
from mlir_shard.sharding import ReductionOp


class Combiner(str, Enum):
    """The operation that combines two elements; the values are the kinds of upstream's `shard.all_reduce`."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PRODUCT = "product"
    AND = "bitwise_and"
    OR = "bitwise_or"
    XOR = "bitwise_xor"

    @property
    def is_bitwise(self) -> bool:
        """Whether it combines bits."""
        return self in (Combiner.AND, Combiner.OR, Combiner.XOR)

    @property
    def is_idempotent(self) -> bool:
        """Whether an initial value may be combined several times."""
        return self not in (Combiner.SUM, Combiner.PRODUCT, Combiner.XOR)

    @property
    def reduction_op(self) -> ReductionOp | None:
        """The sdy reduction that is the same; None if sdy does not have it."""
        return ReductionOp(self.value) if self in (Combiner.SUM, Combiner.MAX, Combiner.MIN) else None


STABLEHLO_OPS = {
    Combiner.SUM: "add",
    Combiner.MAX: "maximum",
    Combiner.MIN: "minimum",
    Combiner.PRODUCT: "multiply",
    Combiner.AND: "and",
    Combiner.OR: "or",
    Combiner.XOR: "xor",
}
# Unsigned maxima and minima are missing on purpose: collectives compare signless integers as signed ones.
_ARITH_OPS = {
    Combiner.SUM: "addf addi",
    Combiner.MAX: "maximumf maxnumf maxsi",
    Combiner.MIN: "minimumf minnumf minsi",
    Combiner.PRODUCT: "mulf muli",
    Combiner.AND: "andi",
    Combiner.OR: "ori",
    Combiner.XOR: "xori",
}
_COMBINERS = {f"stablehlo.{name}": combiner for combiner, name in STABLEHLO_OPS.items()} | {
    name: combiner for combiner, names in _ARITH_OPS.items() for name in op_names("arith", names)
}
SELECTING_OPS = ("stablehlo.dynamic_slice", "stablehlo.gather", "stablehlo.slice", "tosa.gather")
"""Ops that select elements of their first operand: a sum, as a device that does not have an element contributes 0."""
_REDUCE = "stablehlo.reduce"
# Their bodies take the accumulators first.
_COMBINING_OPS = (_REDUCE, "stablehlo.scatter")
_by_name: dict[str, Combiner] = {}


def reduces_with(combiner: Combiner | str, *names: str) -> None:
    """Registers the combiner of ops of these names: it combines the results of devices that each reduce a shard.

    Args:
        combiner: `sum`, `max`, `min`, `product`, `bitwise_and`, `bitwise_or` or `bitwise_xor`.
        names: of ops, or custom calls and composites with their target or name.

    Raises:
        RegistrationError: the combiner is unknown, or a name is not the name of an op.
    """
    check_op_names(names, dialects=False)
    try:
        combiner = Combiner(combiner)
    except ValueError:
        known = ", ".join(one.value for one in Combiner)
        raise RegistrationError(f"unknown combiner {combiner!r}: choose one of {known}") from None
    _by_name.update(dict.fromkeys(names, combiner))


reduces_with(Combiner.SUM, "stablehlo.convolution", "stablehlo.dot", "stablehlo.dot_general", *SELECTING_OPS)


def combiners_of(op: Any) -> tuple[Combiner | None, ...]:
    """Returns the combiner of each result of an op; None for a result that is not a known reduction."""
    op = op.operation
    for name in registered_names(op):
        if name in _by_name:
            return (_by_name[name],) * len(op.results)
    if op.name in _COMBINING_OPS:
        return combiners_of_body(op)
    if len(op.results) and is_structured(op):
        return combiners_of_body(op, first_accumulator=len(op.operands) - len(op.results))
    return (None,) * len(op.results)


def combiners_of_body(
    op: Any, first_accumulator: int = 0, first_element: int | None = None
) -> tuple[Combiner | None, ...]:
    """Returns the combiners by which the body of an op combines its accumulators with something else and yields them.

    Args:
        op: an op whose first region is the body.
        first_accumulator: the number of the argument that is the first accumulator.
        first_element: the number of the argument that is the first element, if accumulators have to be combined with
            the elements themselves, and not with something computed from them.

    Returns:
        For each yielded value the combiner; None if the body does something else.
    """
    arguments, found = list(op.regions[0].blocks[0].arguments), []
    for number, value in enumerate(terminator(op).operands):
        element = None if first_element is None else arguments[first_element + number]
        found.append(_combiner(value, arguments[first_accumulator + number], element))
    return tuple(found)


def _combiner(value: Any, accumulator: Any, element: Any | None) -> Combiner | None:
    combiner = defining_op(value, *_COMBINERS)
    if combiner is None or len(combiner.operands) != 2:
        return None
    uses = list(accumulator.uses)
    if len(uses) != 1 or uses[0].owner.operation != combiner:
        return None
    other = combiner.operands[1 - uses[0].operand_number]
    return _COMBINERS[combiner.name] if element is None or other == element else None


def combiners_of_elements(op: Any) -> tuple[Combiner | None, ...]:
    """Returns the combiners as `combiners_of`, for reductions of the elements of the operands themselves."""
    op = op.operation
    count = len(op.results)
    if op.name == "linalg.reduce":
        return combiners_of_body(op, first_accumulator=count, first_element=0)
    if op.name in (_REDUCE, "stablehlo.reduce_window"):
        return combiners_of_body(op, first_element=count)
    return combiners_of(op)


def reduction_op(op: Any) -> ReductionOp | None:
    """Returns the reduction that combines partial results of `op`; None if no collective of sdy performs it.

    All results have to have the same reduction. It is None for element types on which a collective means something else
    (booleans, unsigned and complex numbers).
    """
    return reduction_kind(op) if all(_is_combinable(result.type) for result in op.operation.results) else None


def reduction_kind(op: Any) -> ReductionOp | None:
    """Returns the reduction as `reduction_op`, for collectives that reduce like the op on every element type."""
    return _common(combiners_of(op))


def reduction_of_body(op: Any) -> ReductionOp | None:
    """Returns the reduction that the body of a collective performs; None if sdy does not have it."""
    return _common(combiners_of_body(op))


def _common(combiners: tuple[Combiner | None, ...]) -> ReductionOp | None:
    found = set(combiners)
    combiner = found.pop() if len(found) == 1 else None
    return None if combiner is None else combiner.reduction_op


def _is_combinable(type_: Any) -> bool:
    element = type_.element_type if isinstance(type_, ir.ShapedType) else type_
    if isinstance(element, ir.IntegerType):
        return element.width > 1 and element.is_signless
    return isinstance(element, ir.FloatType)


@dataclass(frozen=True, slots=True)
class Combination:
    """The way to combine partial results of an op beyond collectives of sdy, which have sums, maxima and minima.

    `combiners` are those of `shard.all_reduce`, one for each result. If empty, the op, whose reduction may be done in
    any tree, is applied again to the gathered partial results.
    """

    combiners: tuple[Combiner, ...] = ()


def combination_of(op: Any) -> Combination | None:
    """Returns how partial results of an op are combined; None if they cannot be."""
    op = op.operation
    if not may_combine(op.name):
        return None
    pairs = zip(combiners_of(op), op.results, strict=True)
    known = tuple(one for one, result in pairs if one is not None and _is_reduced(result, one))
    if known and len(known) == len(op.results):
        return Combination(known)
    return Combination() if op.name == _REDUCE else None


def may_combine(name: str) -> bool:
    """Returns whether `combination_of` may support an op of this name."""
    return name == _REDUCE or name.startswith(("linalg.", "tosa.reduce_"))


def _is_reduced(result: Any, combiner: Combiner) -> bool:
    """Returns whether the collective computes the same as the op on this type."""
    element = result.type.element_type
    if isinstance(element, ir.IntegerType):
        return element.is_signless and (element.width > 1 or combiner.is_bitwise)
    return isinstance(element, ir.FloatType) and not combiner.is_bitwise


def neutral_number(combiner: Combiner, element_type: Any) -> float | None:
    """Returns the number that changes nothing if it is combined with another; None if the type has no such number."""
    is_integer, is_float = isinstance(element_type, ir.IntegerType), isinstance(element_type, ir.FloatType)
    if combiner in (Combiner.SUM, Combiner.PRODUCT):
        has_numbers = is_integer or is_float or isinstance(element_type, ir.ComplexType)
        return int(combiner is Combiner.PRODUCT) if has_numbers else None
    if combiner in (Combiner.OR, Combiner.XOR):
        return 0 if is_integer else None
    if combiner is Combiner.AND:
        return _all_bits(element_type) if is_integer else None
    if is_integer:
        return _least(element_type) if combiner is Combiner.MAX else _largest(element_type)
    if not is_float:
        return None
    infinity = float("-inf") if combiner is Combiner.MAX else float("inf")
    has_infinity = ir.FloatAttr.get(element_type, infinity).value == infinity
    return infinity if has_infinity else None


def neutral_element(combiner: Combiner, element_type: Any) -> Any | None:
    """Returns `neutral_number` as a scalar constant of StableHLO, built at the current insertion point."""
    number = neutral_number(combiner, element_type)
    return None if number is None else stablehlo.scalar(number, element_type)


def _is_unsigned(type_: Any) -> bool:
    # Booleans are unsigned: true is more than false.
    return type_.is_unsigned or type_.width == 1


def _least(type_: Any) -> int:
    return 0 if _is_unsigned(type_) else -(2 ** (type_.width - 1))


def _largest(type_: Any) -> int:
    return 2**type_.width - 1 if _is_unsigned(type_) else 2 ** (type_.width - 1) - 1


def _all_bits(type_: Any) -> int:
    return 2**type_.width - 1 if _is_unsigned(type_) else -1
