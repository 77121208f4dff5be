# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs, their local programs with certificates, and the verdicts on these."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from random_programs import generate
from random_programs.cases import case

import mlir_shard
from mlir_shard.asm import ParseError
from mlir_shard.check.checker import Certificate, Verdict, check
from mlir_shard.dialects.contexts import create_context
from mlir_shard.dialects.parsing import parse
from mlir_shard.passes.registry import PassFailure
from mlir_shard.tools.certified import certify

TARGETS = ("shard", "stablehlo")
ROOT = Path(__file__).resolve().parents[1]
_SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)


@dataclass(frozen=True)
class Source:
    """A program, and the dialects of collectives for which it is partitioned."""

    name: str
    text: str
    targets: tuple[str, ...] = TARGETS


def random_sources(
    count: int, seed: int, scale: generate.Scale, dialects: tuple[str, ...], first: int = 0
) -> Iterator[Source]:
    """Yields random programs. Programs that are not in StableHLO are only for collectives of shard."""
    for number in range(first, first + count):
        one = case(seed, number, dialects, scale=scale)
        yield Source(f"random {one.name}", one.text(), TARGETS if one.dialect == generate.STABLEHLO else TARGETS[:1])


def model_sources() -> Iterator[Source]:
    """Yields the programs of the model zoo. Raises RuntimeError if JAX has fewer devices than they need."""
    from model_zoo.__main__ import load_models
    from model_zoo.program import MODELS

    load_models()
    for name, make in MODELS.items():
        model = make()
        yield Source(name, model.measured().text, model.targets)


def lit_sources() -> Iterator[Source]:
    """Yields the programs of the lit tests of the partition stage and of shard-run that have a mesh."""
    for folder in ("transforms/partition", "tools/shard-run", "transforms/communication"):
        for path in sorted((ROOT / folder).rglob("*.mlir")):
            for number, part in enumerate(_SPLIT.split(path.read_text())):
                if "sdy.mesh" in part or "shard.grid" in part:
                    yield Source(f"{path.relative_to(ROOT)} {number}", part)


@dataclass(frozen=True)
class Partitioned:
    """A local program with the inputs of its check; `module` belongs to the context of `whole`.

    Attributes:
        texts: the texts of the global program and of the certificate.
    """

    whole: Any
    module: Any
    certificate: Certificate
    verdict: Verdict
    texts: tuple[str, str]


def partitioned(source: Source, target: str) -> Partitioned | None:
    """Returns the local program of a program, or None if the program is invalid or cannot be partitioned."""
    kept: list[Any] = []
    context = create_context()

    def partition(path: str) -> Any:
        module = parse(source.text, context, "global.mlir")
        options = f"collectives={target} certificate={path} remarks-above=none"
        mlir_shard.run(module, f"builtin.module(spmd-pipeline{{{options}}})", report=lambda _: None)
        kept.append((module, Path(path).read_text()))
        return module

    try:
        whole = parse(source.text, context, "global.mlir")
        verdict = certify(whole, partition)
    except (ParseError, PassFailure, FileNotFoundError):
        return None
    module, text = kept[0]
    return Partitioned(whole, module, Certificate.read(text), verdict, (source.text, text))


def checked(one: Partitioned, module: Any, by: str = "") -> Verdict:
    """Returns the verdict on another local program of the same global program."""
    return check(one.whole, module, one.certificate, by=by)


def saved(one: Partitioned, name: str, target: str) -> str:
    """Returns a line of a file of partitioned programs, for other checkers."""
    return json.dumps([name, target, one.texts[0], str(one.module), one.texts[1]])


def read(path: Path) -> Iterator[tuple[str, str, Partitioned]]:
    """Yields the partitioned programs of a file, with their names and targets."""
    with path.open() as lines:
        for line in lines:
            name, target, whole, local, text = json.loads(line)
            context = create_context()
            modules = parse(whole, context, "global.mlir"), parse(local, context, "local.mlir")
            yield name, target, Partitioned(*modules, Certificate.read(text), Verdict(), (whole, text))
