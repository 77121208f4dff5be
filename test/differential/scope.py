# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A block under construction: the values seen in it, and the statements so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from differential.annotations import Annotations
from differential.program import Body, Function, Part, Shape, Statement, Value, tensor

SIZES = (1, 2, 3, 4, 6, 8, 8, 12, 16)

# What a constant of a shape and an element type is, as text.
Literal = Callable[[Random, Shape, str], str]


def plain_literal(random: Random, shape: Shape, element: str) -> str:
    """Zeros and truth, and small whole numbers."""
    return {"f32": "0.0", "i1": "true"}.get(element, str(random.randint(0, 1)))


@dataclass
class Module:
    """What all blocks of a program share."""

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
    """A block. `manual` are the axes that may not be used in it, `depth` is how many regions it is in."""

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
        """A new value, which something has to define."""
        return Value(self.module.fresh(), shape, element)

    def pick(self, fits: Callable[[Value], bool] = lambda value: True, element: str = "f32") -> Value | None:
        """A value of the element type that fits, later ones rather than earlier."""
        fitting = [value for value in self.values if value.element == element and fits(value)]
        if not fitting:
            return None
        return fitting[max(self.random.randrange(len(fitting)) for _ in range(2))]

    def alike(self, value: Value) -> Value:
        """A value of the same type, which may be the same."""
        return self.random.choice([other for other in self.values if other.type == value.type])

    def of_type(self, shape: Shape, element: str = "f32") -> Value:
        """A value of this type; a constant where there is none."""
        found = self.pick(lambda value: value.shape == shape, element)
        return found if found is not None else self.constant(shape, element)

    def constant(self, shape: Shape, element: str = "f32", literal: str | None = None) -> Value:
        if literal is None:
            literal = self.module.literal(self.random, shape, element)
        type_ = tensor(shape, element)
        text = f'"stablehlo.constant"() <{{value = dense<{literal}> : {type_}}}>'
        return self.add([self.define(shape, element)], text, " : () -> ", type_)[0]

    def converted(self, value: Value, element: str) -> Value:
        """The value with another element type."""
        return self.op("convert", [value], [(value.shape, element)])[0]

    def add(self, results: Sequence[Value], *parts: Part, seen: bool = True) -> tuple[Value, ...]:
        """Appends a statement; its results can be used from then on."""
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
        """A block inside this one."""
        seen = [] if isolated else list(self.values)
        return Scope(self.module, [*seen, *arguments], [], self.manual | manual, self.depth + 1)

    def body(self, terminator: str, returned: Sequence[Value], arguments: Sequence[Value] | None = None) -> Body:
        """The block as a region's, which ends by giving back values."""
        names = ", ".join(value.name for value in returned)
        types = ", ".join(value.type for value in returned)
        text = f'"{terminator}"({names}) : ({types}) -> ()'
        header = "" if arguments is None else f"^bb0({', '.join(f'{v.name}: {v.type}' for v in arguments)}):"
        return Body((*self.statements, Statement((), (text,), is_terminator=True)), header)


def array(values: Sequence[int]) -> str:
    """A dense array attribute of integers as text."""
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def combiner(scope: Scope, name: str, elements: Sequence[str] = ("f32",)) -> Body:
    """A region that combines two elements of each type by an operation."""
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
