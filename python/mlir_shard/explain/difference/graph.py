# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A module as a graph of its computation, without names, order and calls, and with separate shardings.

A call is replaced by the body of its function, an annotation by its operand. Constants and expansions of scalars belong
to each of their uses, because propagation shards each use separately and merges equal ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlir_shard.ir.arrays import ModuleArrays

ARGUMENT, RESULT, CALL = "argument", "result", "func.call"
ARGUMENT_OF_CALL, RESULT_OF_CALL = "argument of a call", "result of a call"


class Numbers:
    """Numbers of keys, from 0; equal keys have the same number."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}

    def of(self, key: Hashable) -> int:
        """Returns the number of a key."""
        return self._known.setdefault(key, len(self._known))


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """An operation at one place, or an argument or result of a function there.

    Attributes:
        index: its number in the graph.
        op: the number of the operation, or of the function, in the arrays of the graph.
        what: the name of the operation; `ARGUMENT` or `RESULT` of a function, or those of a call.
        position: the position of an argument or result; else -1.
        kind: equal for operations with the same name, types and attributes, except names of symbols and shardings.
        loose_kind: equal for operations with the same name and the same numbers of operands and results.
        operands, results: numbers of values; an annotation has its operand as its result, which is not listed.
        shardings: the shardings of its results, then those of the arguments of its body if it holds them.
        parent: the node around it; None if it has none.
        block: the number of its block in the regions of the node around it.
        is_annotation: whether its result is its operand, or it is a call, whose operands are the returned values.
        is_by_use: whether it belongs to its uses.
        inner: the nodes in its regions.
        arguments: the arguments of all blocks in its regions.
    """

    index: int
    op: int
    what: str
    position: int
    kind: int
    loose_kind: int
    operands: tuple[int, ...]
    results: tuple[int, ...]
    shardings: tuple[str | None, ...]
    parent: Node | None
    block: int
    is_annotation: bool = False
    is_by_use: bool = False
    inner: Sequence[Node] = ()
    arguments: Sequence[int] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """A function that no other function calls, or, if `op` is -1, the operations of a module outside of functions.

    `names` are those of arguments, empty for arguments without a name; `nodes` includes arguments and results.
    """

    op: int
    name: str
    names: tuple[str, ...]
    arguments: tuple[Node, ...]
    results: tuple[Node, ...]
    nodes: list[Node]


@dataclass(frozen=True, slots=True)
class Graph:
    """A module as a graph.

    Attributes:
        arrays: its operations.
        roots: its functions, except those that are called, then the operations outside of functions.
        nodes: all nodes by their index.
        definers: the node that defines each value; None for arguments of blocks.
        users: the nodes that use each value, except annotations, with the number of the operand.
    """

    arrays: ModuleArrays
    roots: list[Root]
    nodes: list[Node]
    definers: list[Node | None]
    users: Mapping[int, Sequence[tuple[Node, int]]]

    def operation(self, node: Node) -> Any:
        """Returns the operation of a node, or the function that it is an argument or result of."""
        return self.arrays.operation(node.op)
