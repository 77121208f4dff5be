# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of the MPI library at the current insertion point, and a communicator for each device group.

Calls use the binary interface of one implementation. Communicators are created when the program first runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.runtime.collectives import buffers
from mlir_shard.runtime.launch.mpi_library import MpiAbi

if TYPE_CHECKING:
    from mlir_shard.runtime.collectives.groups import Group

_arith = host.dialect("arith")
_llvm = host.dialect("llvm")
STATUS_IGNORE = "MPI_STATUS_IGNORE"
WORLD = "MPI_COMM_WORLD"


class Library:
    """The functions and predefined handles of the library that a module uses, each declared once."""

    def __init__(self, module: Any, abi: MpiAbi) -> None:
        self.abi = abi
        self._module = module
        self._declared: set[str] = set()

    def call(self, name: str, arguments: Sequence[Any]) -> None:
        """Calls the function `name`.

        Its return code is ignored: errors end the ranks, which is the default of MPI.

        Args:
            arguments: values, integers that become C ints, or names of predefined handles in MPI.
        """
        values = [self._argument(one) for one in arguments]
        types = ", ".join(str(value.type) for value in values)
        # Upstream's lowering of the mpi dialect reuses an existing declaration.
        self._declare(name, f"llvm.func @{name}({types}) -> i32")
        _llvm.CallOp(ir.IntegerType.get_signless(32), values, [], [], callee=name)

    @property
    def stored_type(self) -> Any:
        """The type of a handle in memory, which is an integer."""
        return ir.IntegerType.get_signless(64 if self.abi.passes_pointers else 32)

    def stored(self, name: str) -> Any:
        """Returns the predefined handle `name` in the form that is stored in memory."""
        handle = self._argument(name)
        return _llvm.PtrToIntOp(self.stored_type, handle).result if self.abi.passes_pointers else handle

    def from_stored(self, value: Any) -> Any:
        """Returns a handle loaded from memory in the form that functions take."""
        return _llvm.IntToPtrOp(_pointer_type(), value).result if self.abi.passes_pointers else value

    def _argument(self, given: Any) -> Any:
        if isinstance(given, int):
            return integer(given)
        if not isinstance(given, str):
            return given
        if given == STATUS_IGNORE:
            address = _arith.ConstantOp(ir.IntegerType.get_signless(64), self.abi.status_ignore).result
            return _llvm.IntToPtrOp(_pointer_type(), address).result
        handle = self.abi.handles[given]
        if isinstance(handle, int):
            return integer(handle)
        self._declare(handle, f"llvm.mlir.global external @{handle}() : !llvm.array<0 x i8>")
        return _llvm.AddressOfOp(_pointer_type(), handle).result

    def _declare(self, name: str, text: str) -> None:
        if name not in self._declared:
            self._module.body.append(ir.Operation.parse(text))
            self._declared.add(name)


def integer(value: int) -> Any:
    """Returns a constant C int."""
    return _arith.ConstantOp(ir.IntegerType.get_signless(32), value).result


def rank() -> Any:
    """Returns the number of this rank in the world, a C int."""
    return _of_world("mpi.comm_rank")


def size() -> Any:
    """Returns the number of ranks in the world, a C int."""
    return _of_world("mpi.comm_size")


def _of_world(name: str) -> Any:
    world = ir.Operation.create("mpi.comm_world", results=[ir.Type.parse("!mpi.comm")]).result
    return ir.Operation.create(name, results=[ir.IntegerType.get_signless(32)], operands=[world]).result


def _pointer_type() -> Any:
    return ir.Type.parse("!llvm.ptr")


_memref = host.dialect("memref")
_scf = host.dialect("scf")
# No communicator has the value 0.
_NOT_MADE = 0


class Communicators:
    """The communicators of a module, each in a global variable."""

    def __init__(self, module: Any, calls: Library) -> None:
        self._module = module
        self._calls = calls
        self._names: dict[Group, str] = {}

    def of(self, group: Group) -> Any:
        """Returns the communicator of a group as an argument for `Library.call`, at the current insertion point."""
        if group.is_world:
            return WORLD
        if group not in self._names:
            self._names[group] = f"mlir_shard.communicator_{len(self._names)}"
        return self._calls.from_stored(_memref.LoadOp(self._variable(self._names[group]), []).result)

    def make(self, entry: Any) -> None:
        """Declares the variables, and makes the function `entry` create the communicators in its first call."""
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
                    self._calls.call("MPI_Comm_split", [WORLD, *group.colour_and_key(), made])
                _scf.YieldOp([])

    def _variable(self, name: str) -> Any:
        return _memref.GetGlobalOp(self._type(), name).result

    def _type(self) -> Any:
        return ir.MemRefType.get([], self._calls.stored_type)
