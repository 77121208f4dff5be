# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of one random reshard each, partitioned by the entire pipeline: collectives beside plans and Shardy.

    python benchmarks/reshard_programs.py [--pairs 500] [--meshes 4x2x2 8x8x4x8] [--targets shard stablehlo] [--check]
    python benchmarks/reshard_programs.py --planning-time

Pairs of shardings are along axes and sub-axes in any order, of tensors of rank 2 to 4, even and uneven, some with
partial sums in the source. Each program is a function that constrains an argument with the source sharding to the
target sharding, partitioned by `spmd-pipeline` with the collectives of each target. For each mesh and target it prints
the mean and worst ratio of the bytes that a device receives, and of the predicted time of the collectives in the local
program, to those of the planner's plan, and the numbers of programs that take more and less than the plan; the number
of programs that receive data although the plan is local (these are in no ratio); and the numbers of programs that take
more time than Shardy's collectives, by jaxlib's Shardy in the same run, and than the program of the other target. If
shards are so uneven that Shardy's collectives would not be correct, those of a padded tensor are used, in a separate
column.

With `--check` the exit status is 1 if a program takes more time or bytes than the plan, or more time than Shardy's
collectives on the tensor itself or than the program of the other target, or if the pipeline fails for a program.

With `--planning-time` no program is made: it prints the processor time of the plans, without garbage collection, each
by a new planner.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from statistics import mean, quantiles

from resharding_peers import shardy
from resharding_peers.local_programs import TARGETS, Cost, program_costs
from resharding_peers.pairs import ELEMENT_SIZE, mesh_of
from resharding_peers.program_ratios import HEAD, Peers, Ratios, compared, worst_programs
from resharding_peers.random_reshards import Reshard, random_reshards

from mlir_shard.resharding.cost.cost_model import CostModel
from mlir_shard.resharding.planner import Planner

MESHES = ((4, 2, 2), (8, 8, 4, 8), (4, 4, 2, 8, 2), (2, 2, 2, 2, 2, 2), (16, 16, 4, 2))


def planned(reshards: Sequence[Reshard], model: CostModel) -> list[Cost]:
    """Returns the cost of the plan for each reshard."""
    planner = Planner(model)
    costs = []
    for reshard in reshards:
        plan = planner.plan(reshard.source, reshard.target, ELEMENT_SIZE)
        kinds = tuple(type(step.move).__name__ for step in plan.steps if not step.is_local)
        costs.append(Cost(sum(step.most_bytes for step in plan.steps), plan.time, kinds))
    return costs


def planning_time(sizes: tuple[int, ...], arguments: argparse.Namespace) -> str:
    """Returns a row with the times to plan reshards on one mesh, in milliseconds."""
    times = []
    gc.disable()
    for reshard in random_reshards(mesh_of(sizes), arguments.pairs, arguments.seed):
        begin = time.process_time()
        Planner().plan(reshard.source, reshard.target, ELEMENT_SIZE)
        times.append((time.process_time() - begin) * 1e3)
    gc.enable()
    median, *_, last = quantiles(times, n=20)[9:]
    few = sum(one < 5 for one in times) / len(times)
    return f"{_named(sizes):<14}{median:8.1f}{last:8.1f}{max(times):8.1f}{mean(times):8.1f}{few:10.0%}"


def measure(sizes: tuple[int, ...], arguments: argparse.Namespace) -> tuple[list[Ratios], str]:
    """Returns the ratios of each target on one mesh, and the text of the table."""
    mesh, model = mesh_of(sizes), CostModel()
    reshards = random_reshards(mesh, arguments.pairs, arguments.seed)
    exact, padded = shardy.costs_of(reshards, model)
    plans = planned(reshards, model)
    programs, seconds = {}, {}
    for target in arguments.targets:
        begin = time.process_time()
        programs[target] = program_costs(reshards, mesh, target, model)
        seconds[target] = time.process_time() - begin
    uneven, unreduced = sum(not one.is_even for one in reshards), sum(one.is_unreduced for one in reshards)
    lines = [
        f"mesh {_named(sizes)}: {len(reshards)} pairs, {uneven} of uneven shards, {unreduced} of partial sums",
        HEAD,
    ]
    found = []
    for target, costs in programs.items():
        other = next((one for one in programs if one != target), target)
        peers = Peers(plans, exact, padded, programs[other])
        found.append(compared(_named(sizes), target, costs, peers, seconds[target]))
        lines.append(found[-1].row())
        lines += worst_programs(reshards, costs, peers, arguments.worst)
    return found, "\n".join(lines)


def _named(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=500, help="of each mesh")
    parser.add_argument("--seed", type=int, default=0, help="of the pairs")
    parser.add_argument("--meshes", nargs="*", default=[_named(sizes) for sizes in MESHES], help="such as 4x2x2")
    parser.add_argument("--targets", nargs="*", choices=TARGETS, default=TARGETS)
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="print the N programs farthest from the plan")
    parser.add_argument("--check", action="store_true", help="fail where a program takes more than it has to")
    parser.add_argument("--json", action="store_true", help="JSON instead of tables")
    parser.add_argument("--planning-time", action="store_true", help="print how long planning takes instead")
    arguments = parser.parse_args()
    meshes = [tuple(map(int, name.split("x"))) for name in arguments.meshes]
    if arguments.planning_time:
        print(f"{'ms to plan':<14}{'median':>8}{'95 %':>8}{'longest':>8}{'mean':>8}{'below 5':>10}")
        for sizes in meshes:
            print(planning_time(sizes, arguments), flush=True)
        return 0
    found = []
    for sizes in meshes:
        ratios, text = measure(sizes, arguments)
        found += ratios
        if not arguments.json:
            print(text, flush=True)
    if arguments.json:
        print(json.dumps([asdict(one) for one in found], indent=2))
    return 1 if arguments.check and not all(one.is_least for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
