# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Terms: numbers, elements of arguments, and ops on terms. Equal terms have one number.

Sums and products do not depend on order and nesting. An op on numbers is folded to a number if the result is exact or
rounded by IEEE 754.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from mlir_shard.check.kernel.kinds import IDEMPOTENT, KINDS, NEUTRAL, ZEROS, fits, width
from mlir_shard.deferred import numpy as np

UNKNOWN = 0
"""The term of an unknown element."""
FLOATS = {"f64": "float64", "f32": "float32", "f16": "float16"}
# Ops that are exact on integers, and rounded by IEEE 754 on floats.
_FOLDED = {
    name: compute
    for compute, names in {
        "add": "add addf addi",
        "subtract": "sub subtract subf subi",
        "multiply": "mul multiply mulf muli",
        "divide": "divide divf",
        "floor_divide": "divui divsi floordivsi intdiv",
        "mod": "remainder remui remsi",
        "maximum": "maximum maximumf maxsi",
        "minimum": "minimum minimumf minsi",
        "negative": "negate negf",
        "absolute": "abs absf absi",
        "floor": "floor",
        "ceil": "ceil",
        "sqrt": "sqrt",
    }.items()
    for name in names.split()
}
_CONVERSIONS = frozenset(
    [
        "convert",
        "cast",
        "extf",
        "truncf",
        "sitofp",
        "uitofp",
        "fptosi",
        "fptoui",
        "extsi",
        "extui",
        "trunci",
        "index_cast",
        "index_castui",
    ]
)
_UNSIGNED = ("convert", "cast", "uitofp", "extui")
_COMPARED = {"equal": "EQ", "greater": "GT", "greater_equal": "GE"}
# The longest sum that is multiplied part by part, by any terms and by numbers.
_LONGEST, _LONGEST_OF_NUMBERS = 16, 256
_DIVISIONS = ("stablehlo.divide", "arith.divf")
_ORDERS = {"EQ": "equal", "NE": "not_equal", "LT": "less", "LE": "less_equal", "GT": "greater", "GE": "greater_equal"}
_ZEROS = tuple(("number", zero) for zero in ZEROS)
# The operand that determines a reduction regardless of the other operands.
_DOMINANT = {"and": False, "or": True}


def number(text: str) -> Any:
    """Returns the number that a text spells; None if the text is not a number."""
    if text in ("True", "False"):
        return text == "True"
    for of in (int, float):
        try:
            return of(text)
        except ValueError:
            pass
    return None


def entries_of(attribute: Any) -> Any:
    """Returns the numbers of a constant; None if NumPy has no counterpart of their type."""
    element = str(attribute.type.element_type)
    try:
        entries = np.array(attribute)
    except (TypeError, ValueError, RuntimeError):
        return None
    kinds = "f" if element in FLOATS else "b" if element == "i1" else "iu" if width(element) else ""
    return entries if entries.dtype.kind in kinds else None


def folded(op: tuple[Any, ...], numbers: Sequence[Any]) -> Any:
    """Returns the result of an op on numbers; None for other ops, wrapping integers, and non-finite numbers."""
    name, element = str(op[0]).partition(".")[2], op[1] if len(op) > 1 else ""
    if op[0] == "compare" or name in _COMPARED:
        order = _ORDERS.get(op[1] if op[0] == "compare" else _COMPARED[name])
        if order is None or any(one != one for one in numbers) or ("UNSIGNED" in str(op[2:]) and min(numbers) < 0):
            return None
        return bool(getattr(np, order)(*numbers))
    if name in _CONVERSIONS:
        return _converted(name, str(element), numbers[0])
    compute = _FOLDED.get(name)
    if compute is None or any(isinstance(one, bool) for one in numbers):
        return None
    if element in FLOATS:
        if compute in ("floor_divide", "mod"):
            return None
        given = [getattr(np, FLOATS[element])(one) for one in numbers]
        if not np.isfinite(given).all():
            return None
        with np.errstate(all="ignore"):
            found = float(getattr(np, compute)(*given))
        return found if np.isfinite(found) else None
    if compute == "sqrt" or not all(isinstance(one, int) for one in numbers):
        return None
    if compute in ("divide", "floor_divide", "mod"):
        # All rounding modes agree on natural numbers.
        compute = "floor_divide" if compute == "divide" else compute
        if numbers[0] < 0 or numbers[1] <= 0:
            return None
    exact = int(getattr(np, compute)(*(np.array(one, object) for one in numbers)))
    return exact if fits(str(element), exact, exact) else None


def _converted(name: str, element: str, of: Any) -> Any:
    """Returns a number converted to another type; floats are rounded to integers towards zero, to nearest in tosa."""
    if isinstance(of, bool):
        if name not in _UNSIGNED:
            return None
        of = int(of)
    if of != of or abs(of) == float("inf"):
        return None
    if element == "i1":
        return of != 0 if name == "convert" else None
    if element in FLOATS:
        with np.errstate(all="ignore"):
            found = float(getattr(np, FLOATS[element])(of))
        return found if np.isfinite(found) else None
    exact = round(of) if name == "cast" else int(of)
    return exact if fits(element, exact, exact) else None


class Terms:
    """The terms of one check, by their numbers."""

    def __init__(self) -> None:
        self.keys: list[tuple[Any, ...]] = [("unknown",)]
        self._numbers: dict[tuple[Any, ...], int] = {}

    def term(self, *key: Any) -> int:
        """Returns the number of a term."""
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.keys)
            self.keys.append(key)
        return found

    def number(self, of: Any) -> int:
        """Returns the term of a boolean, an integer or a float."""
        return self.term("number", repr(of))

    def value(self, term: int) -> Any:
        """Returns the number of a term; None if the term is not a number."""
        key = self.keys[term]
        return number(key[1]) if key[0] == "number" else None

    def may_equal(self, some: Iterable[int], others: Iterable[int]) -> bool:
        """Returns whether terms are not known to be different numbers."""
        pairs = zip(some, others, strict=True)
        return all(one == other or None in (self.value(one), self.value(other)) for one, other in pairs)

    def combined(self, kind: str, parts: Iterable[int]) -> int:
        """Returns a reduction of terms in any order, with nested reductions of the same kind merged into it."""
        count = Counter[int]()
        for one in parts:
            key = self.keys[one]
            if key[0] == kind:
                for inner, times in key[1]:
                    count[inner] += times
            else:
                count[one] += 1
        if kind in _DOMINANT and self.number(_DOMINANT[kind]) in count:
            return self.number(_DOMINANT[kind])
        if UNKNOWN in count:
            return UNKNOWN
        neutral = NEUTRAL.get(kind, ())
        left = {
            one: times
            for one, times in count.items()
            if self.keys[one][0] != "number" or self.keys[one][1] not in neutral
        }
        if not left:
            # Prefers a zero without a sign.
            return max(count, key=lambda one: str(self.keys[one][1])) if count else self.number(0.0)
        if kind == "multiply" and all(self.keys[one] in _ZEROS for one in left):
            return next(iter(left))
        if kind in IDEMPOTENT:
            left = dict.fromkeys(left, 1)
            values = [self.value(one) for one in left]
            if kind in ("maximum", "minimum") and all(type(one) is int for one in values):
                return self.number(max(values) if kind == "maximum" else min(values))
        if kind == "multiply" and (found := self._expanded(left)) is not None:
            return found
        if sum(left.values()) == 1:
            return next(iter(left))
        return self.term(kind, tuple(sorted(left.items())))

    def _expanded(self, factors: dict[int, int]) -> int | None:
        """Returns a product with one short sum as a sum, or a product of negated factors with its sign; else None."""
        negatives = [one for one, times in factors.items() if self.keys[one][0] == "negative" for _ in range(times)]
        if negatives:
            others = [one for one, times in factors.items() if one not in negatives for _ in range(times)]
            found = self.combined("multiply", [*others, *(self.keys[one][1] for one in negatives)])
            return self._negated(found) if len(negatives) % 2 else found
        sums = [one for one, times in factors.items() if self.keys[one][0] == "add" for _ in range(times)]
        others = [one for one, times in factors.items() if one not in sums for _ in range(times)]
        if len(sums) != 1 or not others or not self._is_short(sums[0], others):
            return None
        return self.combined("add", (self.combined("multiply", [*others, part]) for part in self._parts(sums[0])))

    def _is_short(self, term: int, factors: Iterable[int]) -> bool:
        """Returns whether a term is a sum that is short enough to be multiplied part by part."""
        if self.keys[term][0] != "add":
            return False
        are_numbers = all(self.keys[one][0] == "number" for one in factors)
        return sum(times for _, times in self.keys[term][1]) <= (_LONGEST_OF_NUMBERS if are_numbers else _LONGEST)

    def _parts(self, term: int) -> list[int]:
        return [one for one, times in self.keys[term][1] for _ in range(times)]

    def applied(self, op: tuple[Any, ...], terms: tuple[int, ...]) -> int:
        """Returns the term of an op on one element of each operand."""
        name = op[0]
        if name == "stablehlo.select":
            condition = self.value(terms[0])
            if condition is not None:
                return terms[1] if condition else terms[2]
            if terms[1] == terms[2]:
                return terms[1]
        kind = KINDS.get(name) if name != "tosa.mul" or op[-1] == "0" else None
        values = [self.value(one) for one in terms]
        are_numbers = None not in values
        if are_numbers and (found := folded(op, values)) is not None:
            return self.number(found)
        if kind is not None:
            return self.combined(kind, terms)
        if name == "branch" and values[0] is not None:
            # A true condition chooses the first branch, a number its branch, and other values the last branch.
            last = len(terms) - 2
            chosen = int(not values[0]) if isinstance(values[0], bool) else values[0]
            return terms[1 + (chosen if 0 <= chosen <= last else last)]
        if UNKNOWN in terms:
            return UNKNOWN
        if name == "stablehlo.not" and type(values[0]) is bool:
            return self.number(not values[0])
        if name == "stablehlo.clamp" and type(values[0]) is type(values[2]) is int:
            # The ends are numbers.
            return self.applied(("clamped", op[1], str(values[0]), str(values[2])), terms[1:2])
        if name == "clamped" and are_numbers:
            return self.number(min(max(values[0], int(op[2])), int(op[3])))
        if name in ("stablehlo.negate", "arith.negf"):
            return self._negated(terms[0])
        if name in ("stablehlo.subtract", "arith.subf"):
            return self.combined("add", (terms[0], self._negated(terms[1])))
        if name in _DIVISIONS and not width(op[1]) and self._is_short(terms[0], terms[1:]):
            # Integers are rounded.
            return self.combined("add", (self.applied(op, (part, terms[1])) for part in self._parts(terms[0])))
        return self.term("op", op, *terms)

    def _negated(self, term: int) -> int:
        key, of = self.keys[term], self.value(term)
        if isinstance(of, float):
            return self.number(-of)
        if key[0] == "negative":
            return int(key[1])
        if key[0] == "add":
            return self.combined("add", map(self._negated, self._parts(term)))
        return self.term("negative", term)

    def several(self, op: tuple[Any, ...], row: Any) -> int:
        """Returns a reduction of several tensors; nested ones with the same initial numbers are merged into it."""
        count = len(row[0]) // 2
        start, parts = tuple(row[0][count:]), list[Any]()
        for one in row:
            keys = [self.keys[term] for term in one[:count]]
            if all(key[:1] == ("several",) and key[1] == (*op[:2], at) for at, key in enumerate(keys)) and {
                key[2:] for key in keys
            } == {(keys[0][2], start)}:
                parts += keys[0][2]
            else:
                parts.append(tuple(one[:count]))
        return self.term("several", op, tuple(sorted(parts)), start)

    def looked_up(self, base: int | None, row: Any) -> int:
        """Returns the sum of the terms whose numbers equal their positions; with a base, one such term or the base."""
        half, certain, cases = (len(row[0]) - 1) // 2, list[int](), list[Any]()
        for term, *pairs in row:
            pairs = [pair for pair in zip(pairs[:half], pairs[half:], strict=True) if pair[0] != pair[1]]
            if UNKNOWN in (one for pair in pairs for one in pair):
                return UNKNOWN
            if any(self.value(one) is not None for one, _ in pairs):
                continue
            if pairs:
                cases.append((term, tuple(pairs)))
            else:
                certain.append(term)
        if any(term == UNKNOWN for term, _ in cases):
            return UNKNOWN
        if base is None:
            return self.combined("add", [*certain, *(self.term("case", *case) for case in cases)])
        if cases or len(certain) > 1:
            return (
                UNKNOWN
                if UNKNOWN in (base, *certain)
                else self.term("update", base, tuple(certain), tuple(sorted(cases)))
            )
        return certain[0] if certain else base
