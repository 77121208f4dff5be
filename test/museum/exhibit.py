# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A public report of a wrongly partitioned program, rewritten as a small program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from model_zoo.program import Model, Specs


@dataclass(frozen=True)
class Exhibit:
    """A report and its program.

    Attributes:
        repository: the repository on GitHub, with its owner.
        number: the number of the issue or pull request.
        wrong: the part of the result that the partitioner in the report computes wrongly.
        make: makes the program.
    """

    repository: str
    number: int
    wrong: str
    make: Callable[[], Model]

    @property
    def name(self) -> str:
        """The thread in GitHub's notation."""
        return f"{self.repository}#{self.number}"

    @property
    def url(self) -> str:
        """The address of the thread; GitHub redirects issues to pull requests of the number."""
        return f"https://github.com/{self.repository}/issues/{self.number}"


EXHIBITS: dict[str, Exhibit] = {}
"""All exhibits, by name."""

Parts = tuple[Callable[..., Any], tuple[Any, ...], dict[str, int], tuple[Specs, ...], Specs | None]
"""A function, its arguments, the mesh, and the specs of the arguments and of the results."""


def exhibit(repository: str, number: int, wrong: str) -> Callable[[Callable[[], Parts]], Callable[[], Parts]]:
    """Adds the program of the decorated function to the museum."""

    def add(function: Callable[[], Parts]) -> Callable[[], Parts]:
        found = Exhibit(repository, number, wrong, partial(_model, f"{repository}#{number}", function))
        EXHIBITS[found.name] = found
        return function

    return add


def _model(name: str, function: Callable[[], Parts]) -> Model:
    return Model(name, *function())
