# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A block under construction, with the values that are visible in it and the statements so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from differential.annotations import Annotations
from differential.program import Body, Function, Part, Shape, Statement, Value, tensor

SIZES = (1, 2, 3, 4, 6, 8, 8, 12, 16)

# Returns the text of a constant of a shape and an element type.
Literal = Callable[[Random, Shape, str], str]


def plain_literal(random: Random, shape: Shape, element: str) -> str:
    """Returns zero, true, or a small integer."""
    return {"f32": "0.0", "i1": "true"}.get(element, str(random.randint(0, 1)))


@dataclass
class Module:
    """The state that all blocks of a program share."""

    random: Random
    annotations: Annotations
    literal: Literal = plain_literal
    count: int = 0
    functions: list[Function] = field(default_factory=list)
    groups: dict[tuple[Shape, str], int] = field(default_factory=dict)

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"


@dataclass
class Scope:
    """A block. `manual` are the axes that may not be used in it, and `depth` is the number of surrounding regions."""

    module: Module
    values: list[Value] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    manual: frozenset[str] = frozenset()
    depth: int = 0

    @property
    def random(self) -> Random:
        return self.module.random

    @property
    def annotations(self) -> Annotations:
        return self.module.annotations

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def sharding(self, rank: int) -> str:
        return self.annotations.sharding(rank, self.manual)

    def define(self, shape: Shape, element: str = "f32") -> Value:
        """Returns a new value, which must then be defined."""
        return Value(self.module.fresh(), shape, element)

    def pick(self, fits: Callable[[Value], bool] = lambda value: True, element: str = "f32") -> Value | None:
        """Returns a fitting value of the element type, preferably a later one, or None."""
        fitting = [value for value in self.values if value.element == element and fits(value)]
        if not fitting:
            return None
        return fitting[max(self.random.randrange(len(fitting)) for _ in range(2))]

    def alike(self, value: Value) -> Value:
        """Returns a value of the same type, possibly the same value."""
        return self.random.choice([other for other in self.values if other.type == value.type])

    def of_type(self, shape: Shape, element: str = "f32") -> Value:
        """Returns a value of this type, or a new constant."""
        found = self.pick(lambda value: value.shape == shape, element)
        return found if found is not None else self.constant(shape, element)

    def constant(self, shape: Shape, element: str = "f32", literal: str | None = None) -> Value:
        if literal is None:
            literal = self.module.literal(self.random, shape, element)
        type_ = tensor(shape, element)
        text = f'"stablehlo.constant"() <{{value = dense<{literal}> : {type_}}}>'
        return self.add([self.define(shape, element)], text, " : () -> ", type_)[0]

    def converted(self, value: Value, element: str) -> Value:
        """Converts a value to another element type."""
        return self.op("convert", [value], [(value.shape, element)])[0]

    def add(self, results: Sequence[Value], *parts: Part, seen: bool = True) -> tuple[Value, ...]:
        """Appends a statement, whose results can be used afterwards."""
        self.statements.append(Statement(tuple(results), parts))
        if seen:
            self.values += results
        return tuple(results)

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        results: Sequence[tuple[Shape, str]],
        properties: str = "",
        regions: Sequence[Body] = (),
        *,
        attributes: str = "",
        seen: bool = True,
    ) -> tuple[Value, ...]:
        """Appends an operation of StableHLO in generic form, perhaps with shardings of its results."""
        made = [self.define(shape, element) for shape, element in results]
        names = ", ".join(value.name for value in operands)
        types = ", ".join(value.type for value in operands)
        out = ", ".join(value.type for value in made)
        parts: list[Part] = [f'"stablehlo.{name}"({names})' + (f" <{{{properties}}}>" if properties else "")]
        for index, region in enumerate(regions):
            parts += [" ({" if index == 0 else ", {", region, "}"]
        if regions:
            parts.append(")")
        if attributes:
            parts.append(f" {{{attributes}}}")
        else:
            parts.append(self.annotations.on_op([len(value.shape) for value in made], self.manual))
        return self.add(made, *parts, f" : ({types}) -> ({out})", seen=seen)

    def inner(
        self, arguments: Sequence[Value] = (), *, isolated: bool = False, manual: frozenset[str] = frozenset()
    ) -> Scope:
        """Returns a new block inside this one."""
        seen = [] if isolated else list(self.values)
        return Scope(self.module, [*seen, *arguments], [], self.manual | manual, self.depth + 1)

    def body(self, terminator: str, returned: Sequence[Value], arguments: Sequence[Value] | None = None) -> Body:
        """Returns the block as that of a region, whose terminator returns values."""
        names = ", ".join(value.name for value in returned)
        types = ", ".join(value.type for value in returned)
        text = f'"{terminator}"({names}) : ({types}) -> ()'
        header = "" if arguments is None else f"^bb0({', '.join(f'{v.name}: {v.type}' for v in arguments)}):"
        return Body((*self.statements, Statement((), (text,), is_terminator=True)), header)


def array(values: Sequence[int]) -> str:
    """Returns a dense array attribute of integers as text."""
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def combiner(scope: Scope, name: str, elements: Sequence[str] = ("f32",)) -> Body:
    """Returns a region that combines two elements of each type by an operation."""
    inner = scope.inner(isolated=True)
    left = [inner.define((), element) for element in elements]
    right = [inner.define((), element) for element in elements]
    results = []
    for one, other in zip(left, right, strict=True):
        result = inner.define((), one.element)
        text = f'"stablehlo.{name}"({one.name}, {other.name}) : ({one.type}, {one.type}) -> {one.type}'
        inner.statements.append(Statement((result,), (text,)))
        results.append(result)
    return inner.body("stablehlo.return", results, [*left, *right])
