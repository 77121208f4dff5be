# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans the resharding from every sharding to every other one, and simulates every plan. From the folder `test`,

    python -m exhaustive_resharding [--mesh 2x2x2] [--rank 3] [--jobs 2]

prints for each mesh, rank and kind of shardings the number of pairs over all shapes, and the number of plans that do
not deliver exactly the target boxes. Each pair is planned for the least time and for the fewest bytes, with direct
exchanges and with collectives only. Exits with 1 if a plan fails.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from time import perf_counter

from exhaustive_resharding import campaign
from exhaustive_resharding.problems import MESHES, RANKS, Kind, Problems
from mlir_shard.sharding import Mesh

FORMAT = "{:6} {:>4}  {:24} {:>9}  {:44} {:>8} {:>8} {:>8} {:>9} {:>8} {:>7}"
COLUMNS = ("mesh", "rank", "kind", "shardings", "shapes", "pairs", "plans", "steps", "simulated", "failures", "seconds")
MOST_PRINTED = 20


def main() -> int:
    """Runs all problems, or the selected ones."""
    parser = argparse.ArgumentParser(
        prog="python -m exhaustive_resharding",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = {_name(mesh): mesh for mesh in MESHES}
    kinds = {kind.value: kind for kind in Kind}
    parser.add_argument("--mesh", choices=names, action="append", help="only this mesh; more than one may be given")
    parser.add_argument("--rank", choices=RANKS, type=int, action="append", help="only tensors of this rank")
    parser.add_argument("--kind", choices=kinds, action="append", help="only shardings of this kind")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes (default 1)")
    arguments = parser.parse_args()
    every = Problems.of_kinds(
        tuple(names[name] for name in arguments.mesh or names),
        tuple(arguments.rank or RANKS),
        tuple(kinds[name] for name in arguments.kind or kinds),
    )
    return _run(every, arguments.jobs)


def _run(every: list[Problems], jobs: int) -> int:
    begin = perf_counter()
    print(FORMAT.format(*COLUMNS), flush=True)
    total = campaign.Tally()
    with ProcessPoolExecutor(jobs) as processes:
        # The longest tasks begin first, to balance the processes.
        tasks = [(problems, shape) for problems in every for shape in problems.shapes]
        tasks.sort(key=lambda task: len(task[0].pairs) * task[0].rank, reverse=True)
        running = {task: processes.submit(campaign.run_shape, *task) for task in tasks}
        for problems in every:
            tally = campaign.Tally()
            for shape in problems.shapes:
                tally.add(running[problems, shape].result())
            print(_line(problems, tally), flush=True)
            total.add(tally)
    print(FORMAT.format("all", "", "", "", "", *_numbers(total)))
    print(f"{perf_counter() - begin:.0f} seconds in {jobs} processes")
    for failure in total.failures[:MOST_PRINTED]:
        print(failure)
    return 1 if total.failures else 0


def _line(problems: Problems, tally: campaign.Tally) -> str:
    shapes = " ".join("x".join(map(str, shape)) for shape in problems.shapes)
    sources = len({source for source, _ in problems.pairs})
    return FORMAT.format(_name(problems.mesh), problems.rank, problems.kind.value, sources, shapes, *_numbers(tally))


def _numbers(tally: campaign.Tally) -> tuple[int | str, ...]:
    return (tally.pairs, tally.plans, tally.steps, tally.simulated, len(tally.failures), f"{tally.seconds:.1f}")


def _name(mesh: Mesh) -> str:
    return "x".join(str(axis.size) for axis in mesh.axes)


if __name__ == "__main__":
    sys.exit(main())
