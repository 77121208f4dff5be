# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A module read natively into flat arrays: what passes over all operations work on instead of the IR.

Most operations of a program are like another one, so what depends on an operation's signature is asked once a
signature; and nothing has to go through the bindings that concerns every operation.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from mlir_shard import _native
from mlir_shard.asm.module import host_library, native_host
from mlir_shard.host import ir
from mlir_shard.ir.operation_list import OperationList

_INT32 = "i"  # Lists would take up to ten times the memory.


class ModuleArrays:
    """The operations under a root in pre-order, numbered from 0, and the values they define and use, numbered too.

    `parents` has the operation around each, -1 right under the root; `signatures` its signature: operations that
    agree in name, types and attributes, those named in `ignored` left out, have the same. Of operations of a name for
    which `any_sizes` is true not all sizes count: only which are 1, which are equal, and which of the operation's
    tensors has more elements. `definers` has the operation that each value is a result of, -1 for block arguments.
    Valid while no operation is erased.
    """

    def __init__(self, root: Any, ignored: Sequence[str] = (), any_sizes: Callable[[str], bool] | None = None) -> None:
        self._host = native_host()
        self._root = root  # The operations live as long as the module that this holds.
        self._arrays = self._host.read(root.operation._CAPIPtr, list(ignored), any_sizes)

    @cached_property
    def parents(self) -> memoryview[int]:
        """The operation around each."""
        return memoryview(self._arrays.parents)

    @cached_property
    def signatures(self) -> memoryview[int]:
        """The signature of each operation."""
        return memoryview(self._arrays.signatures)

    @cached_property
    def definers(self) -> memoryview[int]:
        """The operation that each value is a result of."""
        return memoryview(self._arrays.definers)

    @cached_property
    def used_once(self) -> bytes:
        """Whether each value is an operand once, and no more."""
        return self._arrays.used_once()

    def use_states(self, movers: Sequence[bool]) -> array[int]:
        """How each value is used: -1 for no use, -3 - s for one use, by an operation of a signature s that is in
        `movers`, -2 for any other."""
        states = array(_INT32)
        states.frombytes(memoryview(self._arrays.use_states(movers)).tobytes())
        return states

    def with_signatures(self, wanted: Sequence[bool]) -> list[int]:
        """The operations whose signature is wanted, in order; `wanted` has each signature."""
        return self._arrays.with_signatures(wanted)

    @property
    def value_count(self) -> int:
        """The number of values."""
        return self._arrays.value_count

    def __len__(self) -> int:
        return len(self._arrays)

    def outermost(self, closes: Callable[[int], bool | None], is_closed: Callable[[int], bool]) -> _native.Operations:
        """The operations that are in no closed one, in pre-order.

        `closes` returns, for each signature met, whether its operations are closed; None is that `is_closed` has it
        of each.
        """
        return self._arrays.outermost(closes, is_closed)

    def expression_splitter(self, kinds: Sequence[_native.ExpressionKind]) -> _native.ExpressionSplitter:
        """What splits the constant expressions of the module; `kinds` has one for each signature."""
        return _native.ExpressionSplitter(self._arrays, kinds)

    def repeated_rewrites(self, ignored: Sequence[tuple[bool, bool]] = ()) -> _native.RepeatedRewrites:
        """Returns the rewriter of isomorphic operations. `ignored` has for each signature whether they may differ in
        their names, and in the constants that they use; without it they do not."""
        return _native.RepeatedRewrites(self._arrays, host_library(), ignored)

    def replace(self, prototypes: Mapping[int, Any]) -> None:
        """Puts copies of prototypes, detached ops given by signature, in the place of the operations that have it."""
        capsules = {signature: op._CAPIPtr for signature, op in prototypes.items()}
        self._host.replace_operations(self._arrays, capsules)

    def made(self) -> OperationList:
        """The operations that `replace` and the splitter of expressions have put in, and not erased again."""
        return OperationList(self._host.made(self._arrays))

    def operands(self, op: int) -> list[int]:
        """The numbers of an operation's operands."""
        return self._arrays.operands(op)

    def results(self, op: int) -> list[int]:
        """The numbers of an operation's results."""
        return self._arrays.results(op)

    def arguments(self, op: int) -> list[int]:
        """The numbers of the arguments of the first block in an operation's first region; none where there is none."""
        return self._arrays.arguments(op)

    def boundary(self, op: int) -> tuple[list[int], list[int], list[list[int]], list[list[int]]]:
        """The values that pass into and out of an operation with regions, by number: see `Boundary`."""
        return self._arrays.boundary(op)

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

    def free_lookup(self) -> None:
        """Frees the table with which `number_of`, `arguments`, `boundary` and `replace` look values up.

        The next lookup makes it again.
        """
        self._arrays.free_lookup()

    def attributed(self, name: str) -> tuple[list[tuple[int, int]], list[Any]]:
        """The operations that have the discardable attribute `name`, in order, each with the index of its own in a
        list of the distinct ones; and that list."""
        uses, distinct = self._host.attributed(self._arrays, name)
        return uses, [ir.Attribute._CAPICreate(capsule).maybe_downcast() for capsule in distinct]

    def attributes(self, name: str) -> tuple[list[int], list[Any]]:
        """For each operation the index of its discardable attribute `name` in a list of the distinct ones, -1 for
        none; and that list."""
        uses, distinct = self.attributed(name)
        indices = [-1] * len(self)
        for op, index in uses:
            indices[op] = index
        return indices, distinct

    def set_result_numbers(self, name: str, numbers_of: Callable[[Any], Sequence[int]], numbers: array[int]) -> None:
        """Sets, among `numbers` of all values, those of the results of operations that have the discardable attribute
        `name` to what `numbers_of` gives for it, asked once for each distinct one."""
        self._host.result_numbers(
            self._arrays,
            name,
            lambda capsule: numbers_of(ir.Attribute._CAPICreate(capsule).maybe_downcast()),
            numbers,
        )

    def alike(self, operations: Sequence[int], numbers: array[int]) -> list[int]:
        """For each of the operations the first of them that has the same signature and whose operands and results have
        the same numbers."""
        return self._arrays.alike(operations, numbers)

    def users(self, value: int) -> list[int]:
        """The operations that use a value, each once, in order."""
        return self._arrays.users(value)

    def uses(self, value: int) -> list[tuple[int, int]]:
        """The operations that use a value, in order, each with the number of the operand."""
        return self._arrays.uses(value)

    def last_following(self, operations: Sequence[int], follows: Sequence[bool]) -> list[int]:
        """The last of the operations that follow each one: of signatures in `follows`, in the same block, and each the
        only use of the result of the one before."""
        return self._arrays.last_following(operations, follows)

    def sharded_ops(self, ops: Sequence[int], tags: Mapping[int, int]) -> _native.ShardedOps:
        """Returns operations by kind: those of a kind agree in signature, contents of regions and tag."""
        return _native.ShardedOps(self._arrays, ops, tags)

    def write_states(
        self,
        now: array[int],
        before: array[int],
        writable: Sequence[bool],
        name: str,
        attribute_of: Callable[[int], Any],
    ) -> tuple[Sequence[int], Sequence[int]]:
        """Gives operations the attribute `name` by the states of their first results.

        The state of value v is at v + 1. Operations of a signature that is `writable` get what `attribute_of` gives
        for the state `now`, where it is not that of `before`. The places of the other states that are not, and the
        operations that got one.
        """
        others, ops = self._host.write_states(
            self._arrays, now, before, writable, name, lambda state: attribute_of(state)._CAPIPtr
        )
        return memoryview(others), memoryview(ops)

    def set_attribute(self, ops: Iterable[int], name: str, attribute: Any) -> None:
        """Sets the discardable attribute `name` on operations."""
        self._host.set_attribute(self._arrays, list(ops), name, attribute._CAPIPtr)
