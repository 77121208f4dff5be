# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws the pictures of docs/resharding.md with shard-reshard, in docs/resharding.

    python tools/draw_reshardings.py [--check]

With `--check` nothing is written, and the exit status is 1 if a picture is not up to date.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from mlir_shard.tools import shard_reshard

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "resharding"

# The mesh, the tensor, the shardings before and after, and other options of each picture.
PICTURES = {
    "replicate_to_split": ("x=2,y=3", "1200x1800xf32", "[[], []]", "[[0], [1]]"),
    "split_to_replicate": ("x=2,y=3", "1200x1800xf32", "[[0], [1]]", "[[], []]"),
    "swapped_axes": ("x=2,y=3", "3600000xf32", "[[0, 1]]", "[[1, 0]]"),
    "moved_axis": ("x=4", "1200x1600xf32", "[[0], []]", "[[], [0]]"),
    "transposed_2x3": ("x=2,y=3", "1200x1800xf32", "[[0], [1]]", "[[1], [0]]"),
    "transposed_2x3_collectives": ("x=2,y=3", "1200x1800xf32", "[[0], [1]]", "[[1], [0]]", "--no-direct-exchange"),
    "transposed_2x6": ("x=2,y=6", "1200x1800xf32", "[[0], [1]]", "[[1], [0]]"),
    "axis_dropped": ("x=2,y=2,z=2", "800x1600xf32", "[[0], [1, 2]]", "[[0], [2]]"),
    "axis_moved_behind": ("x=2,y=2,z=2", "800x1600xf32", "[[0], [1, 2]]", "[[0, 1], [2]]"),
    "rank_3": ("a=2,b=2,c=2,d=2", "256x256x256xf32", "[[3, 2], [], [0, 1]]", "[[0], [1, 2], []]"),
    "unreduced": ("x=2,y=2", "800x1200xf32", "[[], [1]], unreduced=[0]", "[[0], [1]]"),
    "uneven": ("x=4", "5x6xf32", "[[0], []]", "[[], [0]]"),
}


def draw(name: str, folder: Path) -> bool:
    """Draws a picture as `name`.svg in the folder; returns whether that succeeded."""
    mesh, shape, source, target, *options = PICTURES[name]
    path = str(folder / f"{name}.svg")
    return shard_reshard.main(["--mesh", mesh, "--shape", shape, source, target, *options, "-o", path]) == 0


def outdated() -> list[str]:
    """Returns the pictures that differ from those drawn now, are missing, or are not in `PICTURES`."""
    with TemporaryDirectory() as scratch:
        drawn = {f"{name}.svg" for name in PICTURES if draw(name, Path(scratch))}
        there = {path.name for path in FOLDER.iterdir()} if FOLDER.is_dir() else set()
        wrong = {file for file in drawn & there if (Path(scratch) / file).read_bytes() != (FOLDER / file).read_bytes()}
    return sorted(wrong | ({f"{name}.svg" for name in PICTURES} ^ there))


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="do not write; fail if a picture is not up to date")
    if not parser.parse_args().check:
        FOLDER.mkdir(exist_ok=True)
        return 0 if all(draw(name, FOLDER) for name in PICTURES) else 1
    files = outdated()
    for file in files:
        print(f"error: docs/resharding/{file} is not up to date: run tools/draw_reshardings.py", file=sys.stderr)
    return 1 if files else 0


if __name__ == "__main__":
    sys.exit(main())
