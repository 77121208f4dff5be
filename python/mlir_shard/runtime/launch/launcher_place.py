# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rank of this process in an MPI program, from environment variables of launchers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

# The variables for the rank and the number of ranks of Open MPI, MPICH and its derivatives, and Slurm. A batch script
# of Slurm has SLURM_PROCID too, but is not in a step with tasks.
_NAMES = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PALS_RANKID", "PALS_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
# Variables of the process managers by which processes started by srun find each other.
_PROCESS_MANAGERS = ("PMI_RANK", "PMIX_RANK")


@dataclass(frozen=True, slots=True)
class Place:
    """One rank of `size`."""

    rank: int
    size: int


def place(environment: Mapping[str, str] = os.environ) -> Place | None:
    """Returns this process's place in the program of a launcher; None if no launcher has started it."""
    for rank, size in _NAMES:
        given = environment.get(rank, ""), environment.get(size, "")
        if all(text.isdecimal() for text in given):
            return Place(*map(int, given))
    return None


def is_by_srun_alone(environment: Mapping[str, str] = os.environ) -> bool:
    """Returns whether srun has started this process without a PMI, by which ranks find each other."""
    return "SLURM_PROCID" in environment and not any(name in environment for name in _PROCESS_MANAGERS)
