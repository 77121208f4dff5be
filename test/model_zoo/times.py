# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time to partition a model of the zoo, beside the passes of XLA that propagate with Shardy and partition."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from math import isnan, prod
from pathlib import Path
from statistics import median

from propagation import OURS, SHARDY, operations_in
from spmdize import ANEW, in_turn, seconds_of
from xla_passes import xla_seconds

from model_zoo.jax_models import lowered
from model_zoo.program import Model

_PROPAGATION = "sdy-propagation-pipeline"
_PARTITION = "shard-propagate,shard-spmdize{collectives=stablehlo}"
_REPEAT = 5


@dataclass(frozen=True)
class Times:
    """The seconds to propagate and to partition a model, with new plans, here and by the others; NaN for a crash."""

    name: str
    operations: int
    propagation: float
    shardy_propagation: float
    partition: float
    xla_partition: float

    @property
    def of_shardy(self) -> float:
        """The time of propagation here as a multiple of that of Shardy's pipeline of the same name."""
        return self.propagation / self.shardy_propagation

    @property
    def of_xla(self) -> float:
        """The time of partitioning here as a multiple of that of XLA's passes."""
        return self.partition / self.xla_partition


def times(model: Model, rounds: int = 3) -> Times:
    """Measures a model in turn, in new processes; a process repeats a measurement, but for XLA's passes."""
    text: str = lowered(model).as_text()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.mlir")
        file.write_text(text)
        timed = partial(seconds_of, repeat=_REPEAT)
        sides = {
            "propagation": partial(timed, OURS, file, _PROPAGATION),
            "Shardy's": partial(timed, SHARDY, file, _PROPAGATION),
            "partition": partial(timed, ANEW, file, _PARTITION),
            "XLA's": partial(xla_seconds, file, prod(model.mesh.values())),
        }
        took = in_turn(sides, rounds)
    return Times(model.name, operations_in(text), *(took[side] for side in sides))


def summary(measured: Iterable[Times]) -> str:
    """Returns the medians of both ratios over the models that the other side does not crash on."""
    found = list(measured)
    of_shardy = [one.of_shardy for one in found if not isnan(one.of_shardy)]
    of_xla = [one.of_xla for one in found if not isnan(one.of_xla)]
    return (
        f"median over models: propagation {median(of_shardy):.2f} times Shardy's time ({len(of_shardy)} models), "
        f"partitioning {median(of_xla):.2f} times the time of XLA's passes ({len(of_xla)} models)"
    )
