# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The program of a number: its dialect and its text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from differential.program import Program

from random_programs import generate
from random_programs.generate import Scale

_OP = re.compile(r'(?:^|= |^\s*)"?((?:arith|chlo|func|linalg|sdy|stablehlo|tensor|tosa)\.\w+)', re.MULTILINE)
_MESH = re.compile(r"sdy\.mesh @m = <\[(.*?)\]>")
# In StableHLO a few attributes are f32 for tensors of any type.
_FLOAT = {generate.STABLEHLO: re.compile(r"(?<=[x<])f32\b"), generate.LINALG: re.compile(r"f32\b")}
_IN_F32 = 0.2


@dataclass(frozen=True, slots=True)
class Case:
    """A program. Unless `is_single`, its floats are f64, so that no error is rounding. `seed` determines the inputs."""

    name: str
    dialect: str
    program: Program
    is_single: bool
    seed: int

    def text(self, program_text: str | None = None) -> str:
        """Returns the text of the program, or of one derived from it, with the floats of this case."""
        text = self.program.write() if program_text is None else program_text
        return text if self.is_single else _FLOAT[self.dialect].sub("f64", text)


def case(
    seed: int,
    index: int,
    dialects: Sequence[str],
    *,
    is_compiled: bool = False,
    is_neutral: bool = False,
    scale: Scale = generate.SMALL,
) -> Case:
    """Returns the program `index` of a seed; the dialects alternate. For other arguments see `generate`."""
    name, dialect = f"{seed}/{index}", dialects[index % len(dialects)]
    is_single = dialect not in _FLOAT or Random(f"{name}/floats").random() < _IN_F32
    program = generate.program(name, dialect, is_compiled=is_compiled, is_neutral=is_neutral, scale=scale)
    return Case(name, dialect, program, is_single, seed)


def op_kinds(text: str) -> Counter[str]:
    """Returns the number of operations of each name in a program."""
    return Counter(found for found in _OP.findall(text) if found != "sdy.mesh")


def op_at(text: str, place: str) -> str:
    """Returns the name of the operation at a place `file:line:column` of a program, or an empty text."""
    lines, line = text.splitlines(), place.split(":")[-2:-1]
    number = int(line[0]) if line and line[0].isdecimal() else 0
    found = _OP.search(lines[number - 1]) if 0 < number <= len(lines) else None
    return found[1] if found else ""


def mesh(text: str) -> str:
    """Returns the sizes of the axes of a program's mesh, as in 2x2."""
    found = _MESH.search(text)
    return "x".join(re.findall(r"=(\d+)", found.group(1))) if found else ""
