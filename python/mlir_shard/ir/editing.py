# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Native search, reading and editing of many operations, and walks that do not wrap exceptions as the host's walk does.

A pass computes the new value of each distinct attribute or type once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

from mlir_shard import _native
from mlir_shard._native import Purity as Purity
from mlir_shard._native import Side as Side
from mlir_shard.asm.module import host_library, native_host
from mlir_shard.host import ir
from mlir_shard.ir.operation_list import OperationList, capsules_of


@cache
def _editor() -> _native.Editor:
    return _native.Editor(host_library())


def _operation(capsule: Any) -> Any:
    return ir.Operation._CAPICreate(capsule)


def _attribute(capsule: Any) -> Any:
    return ir.Attribute._CAPICreate(capsule).maybe_downcast()


def _type(capsule: Any) -> Any:
    return ir.Type._CAPICreate(capsule).maybe_downcast()


def children(op: Any, name: str) -> list[Any]:
    """Returns the operations of a name directly in the regions of an operation."""
    return [_operation(capsule) for capsule in native_host().children(op.operation._CAPIPtr, name)]


def in_modules(module: Any, name: str) -> list[Any]:
    """Returns the operations of a name directly in a module and in modules nested in it: the places of symbols."""
    inner = children(module, "builtin.module")
    return [*children(module, name), *(one for each in inner for one in in_modules(each, name))]


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of an operation and of all operations below it.

    Attributes:
        operations: the names of operations.
        attributes: the names of discardable attributes, also in signatures of functions.
        has_branches: whether a region has more than one block.
        has_empty_tensors: whether a value is a tensor without elements.
    """

    operations: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    has_branches: bool = False
    has_empty_tensors: bool = False

    def has_any(self, names: Collection[str] | Callable[[str], bool]) -> bool:
        """Returns whether an operation or an attribute has one of the names, or a name that a predicate accepts."""
        both = (self.operations, self.attributes)
        if callable(names):
            return any(map(names, chain(*both)))
        return not all(one.isdisjoint(names) for one in both)

    def without(self, names: Collection[str]) -> Contents:
        """Returns the contents without operations of these names."""
        left = self.operations.difference(names)
        return Contents(left, self.attributes, self.has_branches, self.has_empty_tensors)

    def __or__(self, other: Contents) -> Contents:
        return Contents(
            self.operations | other.operations,
            self.attributes | other.attributes,
            self.has_branches or other.has_branches,
            self.has_empty_tensors or other.has_empty_tensors,
        )


def contents(op: Any) -> Contents:
    """Returns the contents of an operation."""
    return contents_of_all([op])


def contents_of_all(ops: Sequence[Any], *, alone: bool = False) -> Contents:
    """Returns the union of the contents of some operations, without the operations inside them if `alone`."""
    operations, attributes, *features = _editor().contents(capsules_of(ops), alone)
    return Contents(frozenset(operations), frozenset(attributes), *features)


def functions(module: Any) -> dict[str, Any]:
    """Returns the functions of a module by symbol, in the order of the text."""
    found = children(module, "func.func")
    (names,) = attribute_columns(found, "sym_name")
    return {name.value: function for name, function in zip(names, found, strict=True)}


def is_private(symbol: Any) -> bool:
    """Returns whether the visibility of a symbol is `private`."""
    attributes = symbol.attributes
    return "sym_visibility" in attributes and attributes["sym_visibility"].value == "private"


def attribute_columns(ops: Sequence[Any], *names: str) -> list[list[Any]]:
    """Returns for each name the attribute of each operation, None if it has none; equal ones are the same object."""
    columns, capsules = _editor().attribute_columns(capsules_of(ops), names)
    # A missing attribute has the number -1, which is the index of the last element here.
    distinct = [*map(_attribute, capsules), None]
    return [[distinct[number] for number in column] for column in columns]


def distinct_attributes(root: Any, name: str, holders: Sequence[str]) -> list[Any]:
    """Returns the distinct attributes of that name of `root` and below it that are discardable, also in signatures of
    functions, or belong to operations of the names in `holders`."""
    return [_attribute(one) for one in _editor().distinct_attributes(root.operation._CAPIPtr, name, holders)]


def replace_attributes(
    root: Any, name: str, holders: Sequence[str], replaced: Callable[[Any], Any]
) -> OperationList | None:
    """Replaces the attributes that `distinct_attributes` finds. Calls `replaced` once for each, in the text's order.

    Returns the operations named in `holders` of which an attribute has been replaced; None if nothing has changed.
    """
    is_any, changed = _editor().replace_attributes(
        root.operation._CAPIPtr, name, holders, lambda capsule: replaced(_attribute(capsule))._CAPIPtr
    )
    return OperationList(changed) if is_any else None


def may_have_unused(root: Any, of_sdy: Sequence[str] = ()) -> bool:
    """Returns whether an op below `root` has no used result and may be dead. Of sdy's ops only those named count."""
    return _editor().may_have_unused(root.operation._CAPIPtr, of_sdy)


def eliminate_common_ops(
    root: Any, purities: Mapping[str, Purity], of_operation: Callable[[Any], Purity]
) -> OperationList | None:
    """Replaces operations below `root` by equal ones that dominate them, and erases unused ones.

    Args:
        purities: the purity by name of all operations below `root`, whose regions have one block at most.
        of_operation: returns the purity of an operation if the purity of its name is `VARIES`.

    Returns:
        The operations that have replaced others. None if nothing has changed.
    """
    is_any, kept = _editor().eliminate_common(
        root.operation._CAPIPtr, list(purities.items()), lambda capsule: of_operation(_operation(capsule))
    )
    return OperationList(kept) if is_any else None


def hoist_constants(root: Any, names: Sequence[str], isolated: Sequence[str]) -> bool:
    """Moves the constants below `root` to the front of the isolated operation around them, and merges equal ones.

    Args:
        names: the names of constants, which have an attribute `value` and one result.
        isolated: the names of the operations below `root` that are isolated from above.

    Returns:
        Whether anything has changed.
    """
    return _editor().hoist_constants(root.operation._CAPIPtr, names, isolated)


def erase_unused(root: Any, pure: Sequence[str], others: Sequence[str], is_pure: Callable[[Any], bool]) -> bool:
    """Erases the unused operations below `root` with the names in `pure`, and those with the names in `others` for
    which `is_pure` holds; operations that only erased ones use are erased too. Returns whether there were any."""
    return _editor().erase_unused(root.operation._CAPIPtr, pure, others, lambda capsule: is_pure(_operation(capsule)))


def remove_attributes(root: Any, name: str) -> None:
    """Removes the discardable attributes of that name from `root` and below it; `"sdy."` is all of a dialect."""
    _editor().remove_attributes(root.operation._CAPIPtr, name)


def signature_column(function: Any, side: Side, name: str) -> tuple[list[int], list[Any], list[int], list[Any]]:
    """Returns the attribute `name` and the type of each argument or result of a function, as indices: the indices of
    the attributes, -1 for none, the distinct attributes, the indices of the types, and the distinct types."""
    numbers, attributes, numbers_of_types, types = _editor().signature_column(function.operation._CAPIPtr, side, name)
    return numbers, list(map(_attribute, attributes)), numbers_of_types, list(map(_type, types))


def signature_attributes(function: Any, side: Side, name: str) -> tuple[list[int], list[Any]]:
    """Returns the attribute `name` of each argument or result of a function, as its index, -1 for none, in a list of
    the distinct attributes; and that list."""
    numbers, attributes, _, _ = _editor().signature_column(function.operation._CAPIPtr, side, name)
    return numbers, list(map(_attribute, attributes))


def set_signature_column(function: Any, side: Side, name: str, attributes: Sequence[Any]) -> None:
    """Sets the attribute `name` of each argument or result of a function; None removes it."""
    capsules = [None if attribute is None else attribute._CAPIPtr for attribute in attributes]
    _editor().set_signature_column(function.operation._CAPIPtr, side, name, capsules)


def replace(
    op: Any, name: str, added: Mapping[str, Any], *, dropped: Sequence[str] | None = None, body: Any | None = None
) -> Any:
    """Replaces `op` by an operation called `name`, and erases it: its wrapper must not be used any more.

    The new operation has the operands, results and location of `op`, its attributes without the `dropped` ones (None is
    all), and the `added` ones, which do not replace kept ones. The body of the operation `body` is moved to it.
    """
    attributes = [(key, attribute._CAPIPtr) for key, attribute in added.items()]
    taken = None if body is None else body.operation._CAPIPtr
    return _operation(_editor().replace(op.operation._CAPIPtr, name, dropped, attributes, taken))


def replace_with(op: Any, values: Iterable[Any]) -> None:
    """Replaces the results of an operation by values, one for each, and erases it."""
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.erase()


def inline_region(region: Any, values: Iterable[Any], before: Any) -> list[Any]:
    """Moves the ops of a region of one block, except the terminator, before an op, with `values` for its arguments.

    Returns the operands of the terminator. The caller has to replace or erase the parent of the region.
    """
    block = region.blocks[0]
    for argument, value in zip(block.arguments, values, strict=True):
        argument.replace_all_uses_with(value)
    *inner, last = [one.operation for one in block.operations]
    for one in inner:
        one.move_before(before)
    return list(last.operands)


def append(parent: Any, name: str, attributes: Mapping[str, Any], body: Any) -> Any:
    """Appends an operation to the body of `parent`, with the location and the body of the operation `body`."""
    entries = [(key, attribute._CAPIPtr) for key, attribute in attributes.items()]
    return _operation(_editor().append(parent.operation._CAPIPtr, name, entries, body.operation._CAPIPtr))


def function_type(op: Any) -> Any:
    """Returns the type from the arguments of the body of an operation to its results, as an attribute."""
    return _attribute(_editor().function_type(op.operation._CAPIPtr))


def terminator(op: Any) -> Any:
    """Returns the last operation in the first block of an operation."""
    return _operation(_editor().terminator(op.operation._CAPIPtr))


def block_count(op: Any) -> int:
    """Returns the number of blocks in the first region of an operation."""
    return _editor().block_count(op.operation._CAPIPtr)


def clone_with(op: Any, values: MutableMapping[Any, Any]) -> Any:
    """Clones an op at the insertion point, with the operands of the op and of the ops inside it mapped by `values`.

    The results of the clone are added to `values`.
    """
    copied = op.operation.clone().operation
    use_values(copied, values)
    values.update(zip(op.operation.results, copied.results, strict=True))
    return copied


def use_values(op: Any, values: Mapping[Any, Any]) -> None:
    """Replaces operands of an op, and of the ops inside it, by the values that they map to."""
    for one in ops_in(op):
        for number, operand in enumerate(one.operands):
            if operand in values:
                one.operands[number] = values[operand]


def inline_body(call: Any, function: Any) -> OperationList:
    """Replaces a call by a copy of the operations in the only block of a function or computation, which may be `call`
    itself, and erases the call. The copies have call sites as locations, as with upstream's inliner.

    Returns the copies, except those inside others, and the users of the results. Other calls are omitted, because they
    may be inlined and so erased.
    """
    return OperationList(_editor().inline_body(call.operation._CAPIPtr, function.operation._CAPIPtr))


def add_links(
    ops: Sequence[Any],
    side: Side,
    name: str,
    attribute: str,
    attributes: Sequence[Sequence[Any]],
    is_wanted: Callable[[Any], bool],
) -> OperationList:
    """Inserts an operation called `name`, whose operand and result have one type, between each argument or result of
    operations and its uses. Returns the inserted operations.

    Values whose type is not wanted (`is_wanted` is called once for each type), or whose only use already is such an
    operation, are skipped. `attributes` has for each of `ops` the values of `attribute`; none is set if it is empty.
    """
    capsules = [[one._CAPIPtr for one in of_op] for of_op in attributes]
    return OperationList(
        _editor().add_links(
            capsules_of(ops), side, name, attribute, capsules, lambda capsule: is_wanted(_type(capsule))
        )
    )


def take_links(
    ops: Sequence[Any], side: Side, name: str, attribute: str
) -> tuple[list[list[int]], list[Any], OperationList]:
    """Removes the operations called `name` that are the only use of an argument or result of operations.

    Returns:
        For each of `ops` the indices of the `attribute` of the removed operations, -1 without such an operation or
        attribute; the list of these attributes; and the users of the removed operations.
    """
    numbers, attributes, users = _editor().take_links(capsules_of(ops), side, name, attribute)
    return numbers, list(map(_attribute, attributes)), OperationList(users)


ADDITIONS = ("arith.addf", "arith.addi", "linalg.add", "stablehlo.add", "tosa.add")


def first_operations(root: Any) -> list[Any]:
    """Returns the first operation of each name below `root`, in pre-order."""
    return _operations(native_host().first_operations(root.operation._CAPIPtr))


def first_names(root: Any) -> list[str]:
    """Returns the distinct names of the operations below `root`, in the order of their first occurrence."""
    return [op.name for op in first_operations(root)]


def operations_where(root: Any, is_wanted: Callable[[str], bool]) -> list[Any]:
    """Returns the operations below `root` whose name is wanted, in pre-order. Calls `is_wanted` once for each name."""
    names = [name for name in first_names(root) if is_wanted(name)]
    return operations_named(root, *names) if names else []


def op_in_block(op: Any, block: Any) -> Any | None:
    """Returns the op of a block that is `op` or contains it. None if the block does not contain it."""
    while op.name != "func.func" and op.block != block:
        if op.parent is None:
            return None
        op = op.parent.operation
    return None if op.name == "func.func" else op


def operations_named(root: Any, *names: str) -> list[Any]:
    """Returns the operations below `root` that have one of the names, in pre-order."""
    return _operations(native_host().operations_named(root.operation._CAPIPtr, names, post_order=False))


def named_in_each(roots: Sequence[Any], *names: str) -> list[list[Any]]:
    """Returns for each of `roots` the operations below it that have one of the names, in pre-order."""
    return list(map(_operations, _editor().named_in_each(capsules_of(roots), names)))


def operations_named_in_post_order(root: Any, *names: str) -> list[Any]:
    """Returns the operations below `root` that have one of the names, each after those inside it."""
    return _operations(native_host().operations_named(root.operation._CAPIPtr, names, post_order=True))


def operations_with(root: Any, attribute: str) -> list[Any]:
    """Returns the operations in and below `root` that have a discardable attribute of that name, in pre-order."""
    uses = native_host().attribute_uses(root.operation._CAPIPtr, [(attribute, 0)], [])
    # The other places are the arguments and results in a function's signature.
    return [ir.Operation._CAPICreate(capsule) for capsule, _, place, _ in uses if place == 0]


def _operations(capsules: list[Any]) -> list[Any]:
    return [ir.Operation._CAPICreate(capsule) for capsule in capsules]


def ops_below(root: Any, enters: Callable[[Any], bool] = lambda op: True) -> Iterator[Any]:
    """Yields the operations inside `root` in pre-order. Skips the regions of operations for which `enters` is False."""

    def inside(op: Any) -> list[Any]:
        return [one.operation for region in op.regions for block in region.blocks for one in block.operations]

    left = inside(root.operation)[::-1]
    while left:
        op = left.pop()
        yield op
        if len(op.regions) and enters(op):
            left += inside(op)[::-1]


def ops_in(root: Any) -> Iterator[Any]:
    """Yields `root` itself, then the operations inside it in pre-order."""
    yield root.operation
    yield from ops_below(root)
