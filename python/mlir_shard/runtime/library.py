# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of the MPI library, in the binary interface of one implementation, at the current insertion point.

Of upstream's mpi dialect only the world, its size and a rank's number in it are used. For Open MPI its lowering names
reductions that do not exist (`ompi_mpi_sum` for `ompi_mpi_op_sum`) and keeps 32 bits of the pointer to a communicator;
for either it has no operation for most collectives, and no datatype for most element types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir
from mlir_shard.runtime.mpi_abi import MpiAbi

_arith, _llvm = host.dialect("arith"), host.dialect("llvm")

STATUS_IGNORE = "MPI_STATUS_IGNORE"
WORLD = "MPI_COMM_WORLD"


class Library:
    """The functions and the predefined handles of the library that a module uses, each declared once."""

    def __init__(self, module: Any, abi: MpiAbi) -> None:
        self.abi = abi
        self._module = module
        self._declared: set[str] = set()

    def call(self, name: str, arguments: Sequence[Any]) -> None:
        """Calls the function `name`.

        What it returns is not looked at: errors end the ranks, as is the default of MPI.

        Args:
            arguments: values, ints of C, or names of predefined handles as in MPI.
        """
        values = [self._argument(one) for one in arguments]
        types = ", ".join(str(value.type) for value in values)
        # Upstream's lowering of the mpi dialect uses a declaration that is there.
        self._declare(name, f"llvm.func @{name}({types}) -> i32")
        _llvm.CallOp(ir.IntegerType.get_signless(32), values, [], [], callee=name)

    @property
    def stored_type(self) -> Any:
        """The type of a handle in memory, an integer."""
        return ir.IntegerType.get_signless(64 if self.abi.passes_pointers else 32)

    def stored(self, name: str) -> Any:
        """The predefined handle `name`, as in memory."""
        handle = self._argument(name)
        return _llvm.PtrToIntOp(self.stored_type, handle).result if self.abi.passes_pointers else handle

    def from_stored(self, value: Any) -> Any:
        """A handle that was in memory, as functions take it."""
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
    """An int of C."""
    return _arith.ConstantOp(ir.IntegerType.get_signless(32), value).result


def rank() -> Any:
    """The number of this rank in the world, an int of C."""
    return _of_world("mpi.comm_rank")


def size() -> Any:
    """How many ranks there are in the world, an int of C."""
    return _of_world("mpi.comm_size")


def _of_world(name: str) -> Any:
    world = ir.Operation.create("mpi.comm_world", results=[ir.Type.parse("!mpi.comm")]).result
    return ir.Operation.create(name, results=[ir.IntegerType.get_signless(32)], operands=[world]).result


def _pointer_type() -> Any:
    return ir.Type.parse("!llvm.ptr")
