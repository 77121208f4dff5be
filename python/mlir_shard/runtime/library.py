# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of the MPI library, where upstream's mpi dialect has no operation or none for the type of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.runtime import mpich

_arith, _llvm = host.dialect("arith"), host.dialect("llvm")


class Library:
    """The functions of the library that a module calls, each declared once."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._declared: set[str] = set()

    def call(self, name: str, arguments: Sequence[Any]) -> None:
        """Calls `name` at the current insertion point; plain integers are ints of C.

        What it returns is not looked at: errors end the ranks, as is the default of MPI.
        """
        values = [integer(one) if isinstance(one, int) else one for one in arguments]
        if name not in self._declared:
            # Upstream's lowering of the mpi dialect declares the same functions, and takes these where they are there.
            types = ", ".join(str(value.type) for value in values)
            self._module.body.append(ir.Operation.parse(f"llvm.func @{name}({types}) -> i32"))
            self._declared.add(name)
        _llvm.CallOp(ir.IntegerType.get_signless(32), values, [], [], callee=name)


def integer(value: int) -> Any:
    """An int of C."""
    return _arith.ConstantOp(ir.IntegerType.get_signless(32), value).result


def handle(communicator: Any) -> Any:
    """A `!mpi.comm` as the library takes it. Upstream's lowering has it in 64 bits."""
    cast = ir.Operation.create(
        "builtin.unrealized_conversion_cast", results=[ir.IntegerType.get_signless(64)], operands=[communicator]
    )
    return _arith.TruncIOp(ir.IntegerType.get_signless(32), cast.result).result


def world() -> Any:
    """The communicator of all ranks."""
    return ir.Operation.create("mpi.comm_world", results=[ir.Type.parse("!mpi.comm")]).result


def rank() -> Any:
    """The number of this rank among all, an int of C."""
    number = ir.IntegerType.get_signless(32)
    return ir.Operation.create("mpi.comm_rank", results=[number], operands=[world()]).result


def status_ignore() -> Any:
    """What says that a status is not asked for."""
    address = _arith.ConstantOp(ir.IntegerType.get_signless(64), mpich.STATUS_IGNORE).result
    return _llvm.IntToPtrOp(ir.Type.parse("!llvm.ptr"), address).result
