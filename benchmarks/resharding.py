# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Resharding beside Shardy, upstream and PyTorch's DTensor: bytes, collectives and predicted time, in one run.

    python benchmarks/resharding.py [--small | --uneven] [--planning-time] [--torch PYTHON] [--json]

The pairs are all pairs of shardings along entire axes, or a sample if there are more than `--pairs`. The steps of every
planner are converted to the moves of `mlir_shard.resharding` and measured by the same functions, and some of them are
simulated on arrays in which all elements are different. Prints for each planner the number of pairs with a correct
plan; over these, the bytes that all devices receive divided by the lower bound, the mean number of collectives, not
counting slices, the mean time that the cost model predicts, and this time divided by ours for the same pairs; and the
share of all pairs whose plans attain the lower bound. Ours are plans of least time, and plans of fewest bytes. Shardy
is `sdy-reshard-to-collectives` in jaxlib, upstream is `shard-partition` of the host bindings, DTensor is its min-cost
planner, if PYTHON has torch. Fails if another plan takes less time than ours of least time, or fewer bytes than ours of
fewest bytes, if we have no plan, or if a simulated plan does not deliver.

`--planning-time` measures instead the time of our planning, also on meshes of many axes and of many devices.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from resharding_peers import dtensor, ours, shardy, upstream
from resharding_peers.compare import Ours, Planners, compare
from resharding_peers.pairs import Case
from resharding_peers.planning_time import planning_times
from resharding_peers.report import comparison_table, planning_time_table

from mlir_shard.resharding.cost.cost_model import CostModel, Objective

MESHES = ((2, 2), (2, 3), (2, 2, 2), (4, 2, 2))
# By option: sizes that take long to move, sizes that take little time, and sizes that give uneven shards.
SHAPES = {
    "default": ((4096, 4096), (6144, 6144), (4096, 4096), (256, 256, 256)),
    "small": ((64, 64), (96, 96), (64, 64), (16, 16, 16)),
    "uneven": ((1023, 1025), (1023, 1025), (1023, 1025), (99, 101, 103)),
}
# Meshes of many axes, and of 8, 512 and 100,000 devices; some shards are uneven.
LARGE = (
    Case((8, 8, 8, 4, 2), (4096, 4096, 4096, 4096)),
    Case((2, 2, 2, 2, 2, 2), (1024, 1024, 1024, 1024)),
    Case((2, 2, 2, 2, 2, 2), (1000, 37, 5, 123)),
    Case((2, 2, 2), (4096, 4096, 4096)),
    Case((8, 8, 8), (4096, 4096, 4096)),
    Case((2, 50, 1000), (4000, 1000, 5000)),
    Case((10, 10, 10, 10, 10), (100_000, 100_000, 100_000)),
)


def planners(model: CostModel, torch: str) -> Planners:
    """Returns all planners; `torch` is the command of a Python that may have torch."""
    kinds = {"direct exchange": True, "collectives only": False}
    objectives = {"": Objective.TIME, ", fewest bytes": Objective.BYTES}
    return Planners(
        {
            f"{kind}{suffix}": Ours(
                partial(ours.plans, model=replace(model, objective=objective), exchange=exchange), objective
            )
            for suffix, objective in objectives.items()
            for kind, exchange in kinds.items()
        },
        {
            "Shardy": shardy.plans,
            "upstream": upstream.plans,
            "DTensor, min-cost": partial(dtensor.plans, interpreter=torch),
        },
    )


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shapes = parser.add_mutually_exclusive_group()
    for name, what in (("small", "tensors of less than 40 KiB"), ("uneven", "sizes that the blocks do not divide")):
        shapes.add_argument(f"--{name}", dest="shapes", action="store_const", const=name, default="default", help=what)
    parser.add_argument("--pairs", type=_count, default=3000, help="the most pairs of a mesh")
    parser.add_argument("--seed", type=int, default=0, help="of the sample of pairs")
    parser.add_argument("--simulate", type=_count, default=50, help="plans of each planner carried out on arrays")
    parser.add_argument("--cost-model", help="a file that CostModel.of_file reads; else the default model")
    parser.add_argument("--torch", default=sys.executable, metavar="PYTHON", help="a Python that has torch")
    parser.add_argument("--planning-time", action="store_true", help="how long planning takes instead")
    parser.add_argument(
        "--large-pairs", type=_count, default=300, help="of meshes of many axes or devices, for --planning-time"
    )
    parser.add_argument("--json", action="store_true", help="JSON instead of tables")
    arguments = parser.parse_args()
    try:
        model = CostModel.of_file(arguments.cost_model) if arguments.cost_model else CostModel()
    except ValueError as error:
        parser.error(str(error))
    if shutil.which(arguments.torch) is None:
        parser.error(f"no command {arguments.torch}")
    cases = [Case(mesh, shape) for mesh, shape in zip(MESHES, SHAPES[arguments.shapes], strict=True)]
    if arguments.planning_time:
        times = []
        for case in (*cases, *LARGE):
            most = arguments.large_pairs if case in LARGE else arguments.pairs
            of_case = planning_times(case, case.pairs(most, arguments.seed), model)
            times += of_case
            if not arguments.json:
                print(planning_time_table(case, of_case), flush=True)
        if arguments.json:
            print(_json(times))
        return 0
    comparisons = []
    for case in cases:
        pairs = case.pairs(arguments.pairs, arguments.seed)
        one = compare(case, pairs, planners(model, arguments.torch), model, arguments.simulate)
        comparisons.append(one)
        if not arguments.json:
            print(comparison_table(one), flush=True)
    failures = sum(one.failures for one in comparisons)
    if arguments.json:
        print(_json(comparisons))
    else:
        losses = sum(len(one.losses) for one in comparisons)
        print(f"plans of ours that cost more than a peer's: {losses}; failures altogether: {failures}")
    return 1 if failures else 0


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"a number of at least 1, not {text}")
    return int(text)


def _json(results: Sequence[Any]) -> str:
    return json.dumps([asdict(one) for one in results], indent=2, default=str)


if __name__ == "__main__":
    sys.exit(main())
