# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One communicator for each kind of device group, made when the program is entered for the first time.

`convert-shard-to-mpi` splits the world before every collective and frees nothing, and MPICH has some two thousand
communicators: a program with more collectives than that, or with one in a loop, would end there.
"""

from __future__ import annotations

from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.runtime import buffers, library
from mlir_shard.runtime.group import Group
from mlir_shard.runtime.library import Library

_arith, _memref, _scf = host.dialect("arith"), host.dialect("memref"), host.dialect("scf")

# No communicator is 0.
_NOT_MADE = 0


class Communicators:
    """The communicators of a module, each in a global variable."""

    def __init__(self, module: Any, calls: Library) -> None:
        self._module = module
        self._calls = calls
        self._names: dict[Group, str] = {}

    def of(self, group: Group) -> Any:
        """The communicator of a group as an argument for `Library.call`, at the current insertion point."""
        if group.is_world:
            return library.WORLD
        if group not in self._names:
            self._names[group] = f"mlir_shard.communicator_{len(self._names)}"
        return self._calls.from_stored(_memref.LoadOp(self._variable(self._names[group]), []).result)

    def make(self, entry: Any) -> None:
        """Declares the variables, and has the function `entry` make what is asked for, unless that is done."""
        if not self._names:
            return
        for name in self._names.values():
            text = f'memref.global "private" @{name} : {self._type()} = dense<{_NOT_MADE}>'
            self._module.body.append(ir.Operation.parse(text))
        with ir.InsertionPoint.at_block_begin(entry.regions[0].blocks[0]), entry.location:
            first = _memref.LoadOp(self._variable(next(iter(self._names.values()))), []).result
            not_made = _arith.ConstantOp(first.type, _NOT_MADE).result
            condition = _scf.IfOp(_arith.CmpIOp(0, first, not_made).result)
            with ir.InsertionPoint(condition.then_block):
                for group, name in self._names.items():
                    made = buffers.pointer(self._variable(name))
                    self._calls.call("MPI_Comm_split", [library.WORLD, *group.colour_and_key(), made])
                _scf.YieldOp([])

    def _variable(self, name: str) -> Any:
        return _memref.GetGlobalOp(self._type(), name).result

    def _type(self) -> Any:
        return ir.MemRefType.get([], self._calls.stored_type)
