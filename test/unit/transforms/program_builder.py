# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A builder of StableHLO programs on tensors of odd sizes with random shardings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=3, "z"=4]>'
AXES = ["x", "y", "z"]
DTYPES = {"f32": np.float32, "i32": np.int32, "i1": np.bool_}


@dataclass(frozen=True)
class Tensor:
    name: str
    shape: tuple[int, ...]
    element: str

    @property
    def type(self) -> str:
        return type_text(self.shape, self.element)


def type_text(shape: Sequence[int], element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def array_text(values: Sequence[int]) -> str:
    return "array<i64" + (": " + ", ".join(map(str, values)) if len(values) else "") + ">"


@dataclass
class Program:
    """A program under construction: its values so far, and its text."""

    random: np.random.Generator
    lines: list[str] = field(default_factory=list)
    arguments: list[Tensor] = field(default_factory=list)
    values: list[Tensor] = field(default_factory=list)
    count: int = 0

    def argument(self, shape: Sequence[int], element: str) -> Tensor:
        made = Tensor(f"%arg{len(self.arguments)}", tuple(shape), element)
        self.arguments.append(made)
        self.values.append(made)
        if self.random.random() < 0.2:
            return made
        sharded = Tensor(f"%{self.count}", made.shape, element)
        self.count += 1
        self.lines.append(f"{sharded.name} = sdy.reshard {made.name} {self.sharding(shape)} : {made.type}")
        self.values.append(sharded)
        return sharded

    def sharding(self, shape: Sequence[int]) -> str:
        axes = list(self.random.permutation(AXES))
        dims = []
        for _ in shape:
            take = int(self.random.choice([0, 0, 1, 1, 2]))
            mine, axes = axes[:take], axes[take:]
            dims.append("{" + ", ".join(f'"{axis}"' for axis in mine) + "}")
        return f"<@mesh, [{', '.join(dims)}]>"

    def emit(
        self,
        op: str,
        operands: Sequence[Tensor],
        results: Sequence[tuple[Sequence[int], str]],
        attributes: str = "",
        regions: str = "",
    ) -> list[Tensor]:
        """Adds an op in its generic form, with shardings of all results with probability 0.85."""
        name = f"%{self.count}"
        self.count += 1
        made = [
            Tensor(f"{name}#{index}" if len(results) > 1 else name, tuple(shape), element)
            for index, (shape, element) in enumerate(results)
        ]
        if self.random.random() < 0.85:
            shardings = [self.sharding(results[0][0])] if len({tuple(s) for s, _ in results}) == 1 else None
            texts = shardings * len(results) if shardings else [self.sharding(shape) for shape, _ in results]
            sharding = f"sdy.sharding = #sdy.sharding_per_value<[{', '.join(texts)}]>"
            attributes = f"{attributes}, {sharding}" if attributes else sharding
        ins = ", ".join(one.type for one in operands)
        outs = ", ".join(one.type for one in made)
        names = ", ".join(one.name for one in operands)
        left = f"{name}:{len(results)}" if len(results) > 1 else name
        region = f" ({regions})" if regions else ""
        braces = f" {{{attributes}}}" if attributes else ""
        self.lines.append(f'{left} = "{op}"({names}){region}{braces} : ({ins}) -> ({outs})')
        self.values += [one for one in made if one.element in DTYPES]
        return made

    def scalar(self, value: object, element: str) -> Tensor:
        text = str(value).lower()
        name = f"%{self.count}"
        self.count += 1
        made = Tensor(name, (), element)
        self.lines.append(f"{name} = stablehlo.constant dense<{text}> : {made.type}")
        return made

    def pick(self, element: str | None = None, rank: int | None = None) -> Tensor:
        fitting = [
            one
            for one in self.values
            if (element is None or one.element == element)
            and len(one.shape) > 0
            and (rank is None or len(one.shape) == rank)
        ]
        if fitting:
            return fitting[int(self.random.integers(max(0, len(fitting) - 6), len(fitting)))]
        return self.argument(self.shape(rank or int(self.random.integers(1, 4))), element or "f32")

    def like(self, shape: Sequence[int], element: str) -> Tensor:
        fitting = [one for one in self.values if one.shape == tuple(shape) and one.element == element]
        if fitting and self.random.random() < 0.8:
            return fitting[int(self.random.integers(len(fitting)))]
        return self.argument(shape, element)

    def shape(self, rank: int) -> list[int]:
        return [int(self.random.integers(1, 8)) for _ in range(rank)]

    def text(self, returned: Sequence[Tensor]) -> str:
        arguments = ", ".join(f"{one.name}: {one.type}" for one in self.arguments)
        types = ", ".join(one.type for one in returned)
        names = ", ".join(one.name for one in returned)
        body = "\n  ".join(self.lines)
        return f"{MESH}\nfunc.func @main({arguments}) -> ({types}) {{\n  {body}\n  return {names} : {types}\n}}\n"


def scalar_region(op: str, element: str, arguments: int = 2) -> str:
    type_ = type_text((), element)
    return (
        f'{{ ^bb0(%l: {type_}, %r: {type_}): %s = "{op}"(%l, %r) : ({type_}, {type_}) -> {type_}\n'
        f'"stablehlo.return"(%s) : ({type_}) -> () }}'
    )
