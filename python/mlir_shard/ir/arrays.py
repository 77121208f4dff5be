# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A module read natively into flat arrays, on which passes over all operations work instead of the IR.

Most operations of a program have the signature of another one, so properties that depend on the signature are computed
once for each signature, and loops over all operations need no calls of the bindings.
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
    """The operations under a root in pre-order, numbered from 0, and the numbered values that they define and use.

    `parents` has the parent of each operation, -1 directly under the root. `signatures` has the signature of each:
    operations with equal names, types and attributes, except those named in `ignored`, have the same signature. For
    operations of a name for which `any_sizes` returns True, sizes count only by which are 1, which are equal, and which
    of the operation's tensors has more elements. `definers` has the operation that defines each value, -1 for block
    arguments. Valid while no operation is erased.
    """

    def __init__(self, root: Any, ignored: Sequence[str] = (), any_sizes: Callable[[str], bool] | None = None) -> None:
        self._host = native_host()
        self._root = root  # The operations live as long as the module that this holds.
        self._arrays = self._host.read(root.operation._CAPIPtr, list(ignored), any_sizes)

    @cached_property
    def parents(self) -> memoryview[int]:
        """The parent of each operation, -1 directly under the root."""
        return memoryview(self._arrays.parents)

    @cached_property
    def signatures(self) -> memoryview[int]:
        """The signature of each operation."""
        return memoryview(self._arrays.signatures)

    @cached_property
    def definers(self) -> memoryview[int]:
        """The operation that defines each value, -1 for block arguments."""
        return memoryview(self._arrays.definers)

    @cached_property
    def used_once(self) -> bytes:
        """For each value, whether it is used as an operand exactly once."""
        return self._arrays.used_once()

    def use_states(self, movers: Sequence[bool]) -> array[int]:
        """Returns the use state of each value: -1 for no use, -3 - s for one use, by an operation of a signature s that
        is in `movers`, and -2 otherwise."""
        states = array(_INT32)
        states.frombytes(memoryview(self._arrays.use_states(movers)).tobytes())
        return states

    def with_signatures(self, wanted: Sequence[bool]) -> list[int]:
        """Returns the operations whose signature is wanted, in order; `wanted` has an entry for each signature."""
        return self._arrays.with_signatures(wanted)

    @property
    def value_count(self) -> int:
        """The number of values."""
        return self._arrays.value_count

    def __len__(self) -> int:
        return len(self._arrays)

    def outermost(self, closes: Callable[[int], bool | None], is_closed: Callable[[int], bool]) -> _native.Operations:
        """Returns the operations that are not inside a closed operation, in pre-order.

        `closes` returns, for each signature met, whether its operations are closed. If it returns None, `is_closed` is
        called for each of them.
        """
        return self._arrays.outermost(closes, is_closed)

    def expression_splitter(self, kinds: Sequence[_native.ExpressionKind]) -> _native.ExpressionSplitter:
        """Returns the splitter of the constant expressions of the module. `kinds` has one kind for each signature."""
        return _native.ExpressionSplitter(self._arrays, kinds)

    def repeated_rewrites(
        self, ignored: Sequence[tuple[bool, bool, bool]] = (), kept: Sequence[bool] = ()
    ) -> _native.RepeatedRewrites:
        """Returns the rewriter of isomorphic operations.

        Args:
            ignored: for each signature whether they may differ in their names, and in the constants that they use, and
                whether operations of different sizes may share a plan; without it nothing is ignored.
            kept: for each signature whether operations are not visited if no operand has a state; without it all are.
        """
        return _native.RepeatedRewrites(self._arrays, host_library(), ignored, kept)

    def replace(self, prototypes: Mapping[int, Any]) -> None:
        """Replaces operations by copies of the prototype of their signature, a detached operation."""
        capsules = {signature: op._CAPIPtr for signature, op in prototypes.items()}
        self._host.replace_operations(self._arrays, capsules)

    def made(self) -> OperationList:
        """Returns the operations that `replace` and the splitter of expressions have created and not erased again."""
        return OperationList(self._host.made(self._arrays))

    def take_made(self, before: ModuleArrays) -> None:
        """Adds the operations that `made` returns for `before`, arrays of the same module that were read earlier.

        Must be called before the first rewrite by these arrays.
        """
        self._host.take_made(self._arrays, before._arrays)

    def operands(self, op: int) -> list[int]:
        """Returns the numbers of an operation's operands."""
        return self._arrays.operands(op)

    def results(self, op: int) -> list[int]:
        """Returns the numbers of an operation's results."""
        return self._arrays.results(op)

    def arguments(self, op: int) -> list[int]:
        """Returns the numbers of the arguments of the first block in an operation's first region, if there is one."""
        return self._arrays.arguments(op)

    def boundary(self, op: int) -> tuple[list[int], list[int], list[list[int]], list[list[int]]]:
        """Returns the values that pass into and out of an operation with regions, by number: see `Boundary`."""
        return self._arrays.boundary(op)

    def representatives(self) -> list[Any]:
        """Returns the first `ir.Operation` of each signature."""
        return [ir.Operation._CAPICreate(capsule) for capsule in self._host.representatives(self._arrays)]

    def operation(self, op: int) -> Any:
        """Returns the `ir.Operation` of a number."""
        return ir.Operation._CAPICreate(self._host.operation(self._arrays, op))

    def value(self, value: int) -> Any:
        """Returns the `ir.Value` of a number."""
        return ir.Value._CAPICreate(self._host.value(self._arrays, value))

    def number_of(self, value: Any) -> int | None:
        """Returns the number of an `ir.Value`; None for a value of another module."""
        number = self._host.number_of(self._arrays, value._CAPIPtr)
        return None if number < 0 else number

    def free_lookup(self) -> None:
        """Frees the table that `number_of`, `arguments`, `boundary` and `replace` use to look values up.

        The next lookup builds the table again.
        """
        self._arrays.free_lookup()

    def attributed(self, name: str) -> tuple[list[tuple[int, int]], list[Any]]:
        """Returns the operations that have the discardable attribute `name`, in order, each with the index of its
        attribute in a list of the distinct ones; and that list."""
        uses, distinct = self._host.attributed(self._arrays, name)
        return uses, [ir.Attribute._CAPICreate(capsule).maybe_downcast() for capsule in distinct]

    def attributes(self, name: str) -> tuple[list[int], list[Any]]:
        """Returns for each operation the index of its discardable attribute `name` in a list of the distinct ones, -1
        if it has none; and that list."""
        uses, distinct = self.attributed(name)
        indices = [-1] * len(self)
        for op, index in uses:
            indices[op] = index
        return indices, distinct

    def set_result_numbers(self, name: str, numbers_of: Callable[[Any], Sequence[int]], numbers: array[int]) -> None:
        """Sets the entries in `numbers`, which has one for each value, of the results of the operations that have the
        discardable attribute `name` to `numbers_of` the attribute. It is called once for each distinct attribute."""
        self._host.result_numbers(
            self._arrays,
            name,
            lambda capsule: numbers_of(ir.Attribute._CAPICreate(capsule).maybe_downcast()),
            numbers,
        )

    def alike(self, operations: Sequence[int], numbers: array[int]) -> list[int]:
        """Returns for each of the operations the first of them that has the same signature and whose operands and
        results have the same numbers."""
        return self._arrays.alike(operations, numbers)

    def users(self, value: int) -> list[int]:
        """Returns the operations that use a value, without duplicates, in order."""
        return self._arrays.users(value)

    def uses(self, value: int) -> list[tuple[int, int]]:
        """Returns the operations that use a value, in order, each with the number of the operand."""
        return self._arrays.uses(value)

    def last_following(self, operations: Sequence[int], follows: Sequence[bool]) -> list[int]:
        """Returns for each operation the last of a chain of operations that follow it: of signatures in `follows`, in
        the same block, and each the only user of the result of its predecessor."""
        return self._arrays.last_following(operations, follows)

    def forms_of_any_sizes(self, wanted: Sequence[bool], ignored: Sequence[str] = ()) -> list[int]:
        """Returns the number of the form of each signature that is wanted, -1 for the others.

        Signatures of a form differ only in sizes, as far as `any_sizes` ignores them, and in attributes named in
        `ignored`.
        """
        return self._arrays.forms_of_any_sizes(wanted, ignored)

    def sharded_ops(self, ops: Sequence[int], tags: Mapping[int, int], forms: Sequence[int] = ()) -> _native.ShardedOps:
        """Returns operations by kind: operations of one kind have equal signatures, contents of regions and tags.

        `forms` has the form of each signature, -1 for those without a form: see `ShardedOps.keep`.
        """
        return _native.ShardedOps(self._arrays, ops, tags, forms)

    def write_states(
        self,
        now: array[int],
        before: array[int],
        writable: Sequence[bool],
        name: str,
        attribute_of: Callable[[int], Any],
    ) -> tuple[Sequence[int], Sequence[int]]:
        """Sets the attribute `name` of operations according to the states of their first results.

        The state of value v is at v + 1. Operations of a signature that is `writable` get `attribute_of` the state in
        `now` if it differs from the state in `before`. Returns the places of the other states that differ, and the
        operations that got an attribute.
        """
        others, ops = self._host.write_states(
            self._arrays, now, before, writable, name, lambda state: attribute_of(state)._CAPIPtr
        )
        return memoryview(others), memoryview(ops)

    def set_attribute(self, ops: Iterable[int], name: str, attribute: Any) -> None:
        """Sets the discardable attribute `name` on operations."""
        self._host.set_attribute(self._arrays, list(ops), name, attribute._CAPIPtr)
