# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sharding rules as text in the manner of einsum and einops: `b i k, b k j -> b i j`.

    rule    ::= tensors "->" tensors mark*
    tensors ::= tensor ("," tensor)*            operands, then results; an empty tensor is a scalar or no tensor
    tensor  ::= ("..." | dim)*
    dim     ::= factor | "1" | "_" | "(" factor+ ")"
    mark    ::= type "={" factor ("," factor)* "}"
    type    ::= "reduction" | "need_replication" | "permutation" | "blocked_propagation"

A factor is a word. `(h d)` is a dimension made of factors, major to minor; `1` one of size 1 that takes no part, `_`
one of any size that must be replicated; `...` stands for any number of leading, pass-through dimensions, the same in
all tensors that have it. A factor in no result is a reduction unless it is marked as something else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.rules.builder import shape_of
from mlir_shard.rules.registry import RuleError, RuleOptions
from mlir_shard.sharding.rule import OpShardingRule, TensorMapping

_TYPES = ("reduction", "need_replication", "permutation", "blocked_propagation")
_MARK = re.compile(r"\s+(\w+)=\{([^{}]*)\}\s*$")
_TOKEN = re.compile(r"\s*(?:(\.\.\.)|(\((?:\s*[A-Za-z]\w*)+\s*\))|([A-Za-z]\w*|1|_)(?!\w))")
_ELLIPSIS = ("...",)

Dim = tuple[str, ...]


class RuleTextError(ValueError):
    """The error of a rule's text that cannot be parsed, or does not fit the shapes."""


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule that was read from text, for all shapes that fit it.

    A dimension is the tuple of its factors; `("1",)`, `("_",)` and `("...",)` stand for the same text. `marks` pairs a
    type with the factors marked with it.
    """

    text: str
    operands: tuple[tuple[Dim, ...], ...]
    results: tuple[tuple[Dim, ...], ...]
    marks: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def rule(
        self,
        operand_shapes: Sequence[Sequence[int]],
        result_shapes: Sequence[Sequence[int]],
        sizes: Mapping[str, int] | None = None,
    ) -> OpShardingRule:
        """Returns the rule for these shapes. `sizes` has the sizes of factors that the shapes leave open.

        Raises RuleTextError if the shapes do not fit the text; the message names tensor, factor and sizes.
        """
        for kind, given_tensors, given in (
            ("operand", self.operands, operand_shapes),
            ("result", self.results, result_shapes),
        ):
            if len(given_tensors) != len(given):
                raise RuleTextError(f"'{self.text}' has {len(given_tensors)} {kind}s, but {len(given)} are given")
        shapes = [tuple(shape) for shape in (*operand_shapes, *result_shapes)]
        tensors = _without_ellipses(self, shapes)
        known = _Sizes(self.text, dict(sizes or {}))
        known.read(tensors, shapes, [self.name_of(number) for number in range(len(shapes))])
        return _numbered(self, tensors, shapes, known.sizes)

    def name_of(self, number: int) -> str:
        """Returns the name of tensor `number` in messages, counted through operands and results."""
        inputs = len(self.operands)
        return f"operand {number}" if number < inputs else f"result {number - inputs}"


def parse_rule(text: str) -> RuleText:
    """Parses a rule. Raises RuleTextError, which shows the part that cannot be parsed."""
    body = text
    marks: list[tuple[str, tuple[str, ...]]] = []
    while match := _MARK.search(body):
        marks.insert(0, (match[1], tuple(name.strip() for name in match[2].split(","))))
        body = body[: match.start()]
    sides = body.split("->")
    if len(sides) != 2:
        raise RuleTextError(f"invalid rule '{text}': expected one '->' before the results, got {len(sides) - 1}")
    operands, results = (tuple(_tensor(tensor, text) for tensor in side.split(",")) for side in sides)
    rule = RuleText(text, operands, results, tuple(marks))
    _check(rule)
    return rule


@dataclass(frozen=True, slots=True)
class TextRule:
    """A rule from text as the function that is registered; `place` is the origin of the text."""

    text: RuleText
    sizes: tuple[tuple[str, int], ...]
    place: str

    def __call__(self, op: Any, options: RuleOptions) -> OpShardingRule:
        """Returns the rule of an op. Raises RuleError if the op does not fit the text."""
        try:
            return self.text.rule(
                [shape_of(value.type) for value in op.operands],
                [shape_of(value.type) for value in op.results],
                dict(self.sizes),
            )
        except RuleTextError as error:
            raise RuleError(
                op, f"the sharding rule of '{op.name}' ({self.place}) does not match the op: {error}"
            ) from error


def rule_from_text(text: str, place: str = "from text", /, **sizes: int) -> TextRule:
    """Returns a function to register: `sharding_rule("my.matmul")(rule_from_text("b i k, b k j -> b i j"))`.

    `sizes` has the sizes of factors that shapes leave open, for example `h=8` for `(h d)`. Raises RuleTextError if the
    text is not a rule, or has no factor of one of the sizes; the function raises RuleError if an op does not fit it.
    """
    if not isinstance(text, str):
        raise RuleTextError(f"invalid rule {text!r}: expected a text such as 'i k, k j -> i j'")
    parsed = parse_rule(text)
    factors = _factors((*parsed.operands, *parsed.results))
    for name, size in sizes.items():
        if name not in factors:
            raise RuleTextError(f"a size is given for '{name}', which is not a factor of '{text}'")
        if not isinstance(size, int) or size < 1:
            raise RuleTextError(f"factor '{name}' of '{text}' must have a positive integer size, got {size!r}")
    return TextRule(parsed, tuple(sizes.items()), place)


def _tensor(tensor: str, text: str) -> tuple[Dim, ...]:
    dims: list[Dim] = []
    position = 0
    tensor = tensor.strip()
    while position < len(tensor):
        match = _TOKEN.match(tensor, position)
        if match is None:
            found = tensor[position:].split()[0]
            expected = "a word, several in parentheses, '1', '_' or '...'"
            raise RuleTextError(f"invalid rule '{text}': '{found}' is not a dimension: expected {expected}")
        dims.append(tuple(match[0].strip(" \t\n()").split()))
        position = match.end()
    return tuple(dims)


def _factors(tensors: Sequence[Sequence[Dim]]) -> list[str]:
    """Returns all factors in the order in which they are first named."""
    names = [factor for tensor in tensors for dim in tensor for factor in dim if factor not in ("1", "_", "...")]
    return list(dict.fromkeys(names))


def _check(rule: RuleText) -> None:
    tensors = (*rule.operands, *rule.results)
    for number, tensor in enumerate(tensors):
        names = [factor for dim in tensor for factor in dim if factor not in ("1", "_")]
        for factor in names:
            if names.count(factor) > 1:
                raise RuleTextError(
                    f"invalid rule '{rule.text}': factor '{factor}' occurs twice in {rule.name_of(number)}"
                )
        if _ELLIPSIS in tensor[1:]:
            raise RuleTextError(
                f"invalid rule '{rule.text}': '...' must be the first dimension of {rule.name_of(number)}"
            )
    known, typed = _factors(tensors), dict[str, str]()
    for type_, factors in rule.marks:
        if type_ not in _TYPES:
            raise RuleTextError(
                f"invalid rule '{rule.text}': unknown factor type '{type_}': expected one of {', '.join(_TYPES)}"
            )
        for factor in factors:
            if factor not in known:
                raise RuleTextError(
                    f"invalid rule '{rule.text}': {type_} factor '{factor}' does not occur in any tensor"
                )
            if type_ != "blocked_propagation" and typed.setdefault(factor, type_) != type_:
                raise RuleTextError(
                    f"invalid rule '{rule.text}': '{factor}' is both a {typed[factor]} and a {type_} factor"
                )
            if type_ == "reduction" and factor in _factors(rule.results):
                raise RuleTextError(
                    f"invalid rule '{rule.text}': reduction factor '{factor}' must not occur in a result"
                )


def _without_ellipses(rule: RuleText, shapes: Sequence[Sequence[int]]) -> list[list[Dim]]:
    expanded: list[list[Dim]] = []
    leading: int | None = None
    for number, (tensor, shape) in enumerate(zip((*rule.operands, *rule.results), shapes, strict=True)):
        name = rule.name_of(number)
        if _ELLIPSIS not in tensor:
            if len(tensor) != len(shape):
                raise RuleTextError(
                    f"'{rule.text}' has {len(tensor)} dimensions for {name}, but its shape is {list(shape)}"
                )
            expanded.append(list(tensor))
            continue
        count = len(shape) - len(tensor) + 1
        if count < 0:
            raise RuleTextError(
                f"'{rule.text}' has at least {len(tensor) - 1} dimensions for {name}, but its shape is {list(shape)}"
            )
        if leading is not None and leading != count:
            raise RuleTextError(
                f"'...' of '{rule.text}' stands for {count} dimensions in {name}, but for {leading} before it"
            )
        leading = count
        expanded.append([*((f"...{dim}",) for dim in range(count)), *tensor[1:]])
    return expanded


@dataclass(slots=True)
class _Sizes:
    """The sizes of factors, inferred from those of dimensions."""

    text: str
    sizes: dict[str, int]

    def read(self, tensors: Sequence[Sequence[Dim]], shapes: Sequence[Sequence[int]], names: Sequence[str]) -> None:
        """Infers the sizes. Raises RuleTextError if a dimension does not fit, or leaves two factors open."""
        left = [
            (dim, size, f"dim {index} of {name}")
            for tensor, shape, name in zip(tensors, shapes, names, strict=True)
            for index, (dim, size) in enumerate(zip(tensor, shape, strict=True))
            if dim != ("_",)
        ]
        while left:
            waiting = [entry for entry in left if not self._read(*entry)]
            if len(waiting) == len(left):
                dim, size, where = left[0]
                unknown = ", ".join(factor for factor in dim if factor not in self.sizes)
                raise RuleTextError(
                    f"'{self.text}' does not determine the factors of {where}, of size {size}: the sizes of "
                    f"{unknown} must be given"
                )
            left = waiting

    def _read(self, dim: Dim, size: int, where: str) -> bool:
        if dim == ("1",):
            if size != 1:
                raise RuleTextError(f"{where} must have size 1 in '{self.text}', but has size {size}")
            return True
        unknown = [factor for factor in dim if factor not in self.sizes]
        if len(unknown) > 1:
            return False
        known = math.prod(self.sizes[factor] for factor in dim if factor not in unknown)
        spelled = " x ".join(f"{factor}={self.sizes[factor]}" for factor in dim if factor not in unknown)
        if not unknown and known != size:
            raise RuleTextError(f"{where} has size {size}, but '{self.text}' requires {spelled}")
        if unknown:
            if known == 0 or size % known:
                raise RuleTextError(f"{where} has size {size}, which is not a multiple of {spelled} in '{self.text}'")
            self.sizes[unknown[0]] = size // known
        return True


def _numbered(
    rule: RuleText, tensors: Sequence[Sequence[Dim]], shapes: Sequence[Sequence[int]], known: Mapping[str, int]
) -> OpShardingRule:
    # The factors of results come first, as in the rules of ops.
    inputs = len(rule.operands)
    ordered = _factors([*tensors[inputs:], *tensors[:inputs]])
    index = {factor: number for number, factor in enumerate(ordered)}
    sizes = [known[factor] for factor in ordered]
    whole: list[int] = []

    def factors_of(dim: Dim, size: int) -> tuple[int, ...]:
        if dim in (("1",), ("_",)):
            if dim == ("_",):
                whole.append(len(sizes))
            sizes.append(size)
            return (len(sizes) - 1,)
        # A dimension of several factors has no factor of size 1.
        several = [factor for factor in dim if known[factor] != 1] or [dim[0]]
        return tuple(index[factor] for factor in several)

    mappings = [
        TensorMapping.of(*(factors_of(dim, size) for dim, size in zip(tensor, shape, strict=True)))
        for tensor, shape in zip(tensors, shapes, strict=True)
    ]
    marked = {type_: [index[one] for of, names in rule.marks if of == type_ for one in names] for type_ in _TYPES}
    in_results = {
        factor for mapping in mappings[inputs:] for dim in mapping.dim_mappings for factor in dim.factor_indices
    }
    typed = {factor for type_ in _TYPES[:3] for factor in marked[type_]}
    summed = [factor for factor in range(len(ordered)) if factor not in in_results | typed]
    return OpShardingRule(
        tuple(sizes),
        tuple(mappings[:inputs]),
        tuple(mappings[inputs:]),
        tuple(sorted({*marked["reduction"], *summed})),
        tuple(sorted({*marked["need_replication"], *whole})),
        tuple(sorted(set(marked["permutation"]))),
        tuple(sorted(set(marked["blocked_propagation"]))),
    )
