# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares handles and constants with those of the libraries and the header of the wheel."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest
from runtime.launchers import open_mpi
from runtime.local_program import local_module, needs_mpich, port, spec

from mlir_shard.runtime import RunError
from mlir_shard.runtime.launch import mpi_library
from mlir_shard.runtime.launch.mpi import MpiEngine, MpiInstallation
from mlir_shard.runtime.launch.mpi_library import MPICH, OPEN_MPI
from mlir_shard.runtime.lowering.lowering_process import LoweringProcess
from mlir_shard.runtime.program import Program


@needs_mpich
def test_numbers_are_those_of_the_header() -> None:
    header = (MpiInstallation.find().library.parents[1] / "include" / "mpi.h").read_text()
    found = {name: int(number, 0) for name, number in re.findall(r"#define (\w+)\s+\(+\w+\)\(?(0x\w+)\)", header)}
    found |= {name: int(number) for name, number in re.findall(r"#define (\w+)\s+\((-\d+)\)", header)}
    abi = mpi_library.of(MPICH)
    assert {name: found[name] for name in abi.handles} == dict(abi.handles)
    assert (found["MPI_PROC_NULL"], found["MPI_ANY_SOURCE"]) == (abi.proc_null, abi.any_source)


def test_symbols_are_those_of_open_mpi() -> None:
    library = ctypes.CDLL(str(MpiInstallation.find(open_mpi()).library))
    assert mpi_library.implementation_of(library) == OPEN_MPI
    assert not [symbol for symbol in mpi_library.of(OPEN_MPI).handles.values() if not hasattr(library, str(symbol))]


def test_implementations_have_the_same_handles() -> None:
    named = {*mpi_library.DATATYPES.values(), *mpi_library.REDUCTIONS.values(), "MPI_COMM_WORLD", "MPI_REQUEST_NULL"}
    assert (
        named | {"MPI_BYTE", "MPI_INT"}
        == mpi_library.of(MPICH).handles.keys()
        == mpi_library.of(OPEN_MPI).handles.keys()
    )


@needs_mpich
def test_a_program_for_another_mpi_is_refused() -> None:
    body = "%0 = shard.all_reduce %a on @g grid_axes = [0] : tensor<3xf32> -> tensor<3xf32>"
    (lowered,) = LoweringProcess(OPEN_MPI)([local_module((2,), "3xf32", body, ["3xf32"])], "main")
    ports = (port("argument 0", spec("3xf32"), 2),)
    with pytest.raises(RunError, match=r"the program is not compiled for MPICH, the implementation of .*libmpi.*"):
        MpiEngine(120).run(Program(lowered, "main", ports, ports, 2), [np.zeros((2, 3), np.float32)])
