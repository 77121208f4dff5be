# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A module read natively into flat arrays: what passes over all operations work on instead of the IR.

Most operations of a program are like another one, so what depends on an operation's signature is asked once a
signature; and nothing has to go through the bindings that concerns every operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mlir_shard.asm.module import native_host
from mlir_shard.host import ir


class ModuleArrays:
    """The operations under a root in pre-order, numbered from 0, and the values they define and use, numbered too.

    `parents` has the operation around each, -1 right under the root; `signatures` its signature: operations that
    agree in name, types and attributes, those named in `ignored` left out, have the same. `definers` has the operation
    that each value is a result of, -1 for block arguments. Valid while no operation is erased.
    """

    def __init__(self, root: Any, ignored: Sequence[str] = ()) -> None:
        self._host = native_host()
        self._arrays = self._host.read(root.operation._CAPIPtr, list(ignored))
        self.parents = self._arrays.parents
        self.signatures = self._arrays.signatures
        self.definers = self._arrays.definers
        operands, results = self._arrays.operands, self._arrays.results
        self._operand_start, self._operands = operands.start, operands.numbers
        self._result_start, self._results = results.start, results.numbers

    def __len__(self) -> int:
        return len(self._arrays)

    def operands(self, op: int) -> list[int]:
        """The numbers of an operation's operands."""
        return self._operands[self._operand_start[op] : self._operand_start[op + 1]]

    def results(self, op: int) -> list[int]:
        """The numbers of an operation's results."""
        return self._results[self._result_start[op] : self._result_start[op + 1]]

    def representatives(self) -> list[Any]:
        """The first `ir.Operation` of each signature."""
        return [ir.Operation._CAPICreate(capsule) for capsule in self._host.representatives(self._arrays)]

    def operation(self, op: int) -> Any:
        """The `ir.Operation` of a number."""
        return ir.Operation._CAPICreate(self._host.operation(self._arrays, op))

    def value(self, value: int) -> Any:
        """The `ir.Value` of a number."""
        return ir.Value._CAPICreate(self._host.value(self._arrays, value))

    def number_of(self, value: Any) -> int | None:
        """The number of an `ir.Value`, None for one of another module."""
        number = self._host.number_of(self._arrays, value._CAPIPtr)
        return None if number < 0 else number

    def attributes(self, name: str) -> tuple[list[int], list[Any]]:
        """For each operation the index of its discardable attribute `name` in a list of the distinct ones, -1 for
        none; and that list."""
        indices, distinct = self._host.attributes(self._arrays, name)
        return indices, [ir.Attribute._CAPICreate(capsule).maybe_downcast() for capsule in distinct]

    def set_attribute(self, ops: Iterable[int], name: str, attribute: Any) -> None:
        """Sets the discardable attribute `name` on operations."""
        self._host.set_attribute(self._arrays, list(ops), name, attribute._CAPIPtr)
