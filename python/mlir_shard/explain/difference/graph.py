# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A module as a graph of what it computes: no names, no order, no calls, and shardings apart from the rest.

A call is the body of its function at that place. Annotations are the values that they annotate. Constants, and what
repeats a scalar, belong to each of their uses, as propagation shards each use on its own and merges what is equal.
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
        """The number of a key."""
        return self._known.setdefault(key, len(self._known))


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """An operation at one place, or an argument or result of a function there.

    Attributes:
        index: its number in the graph.
        op: the number of the operation, or of the function, in the arrays of the graph.
        what: the name of the operation; `ARGUMENT` or `RESULT` of a function, or those of a call.
        position: of an argument or result, else -1.
        kind: agrees for operations with the same name, types and attributes; names of symbols and shardings apart.
        loose_kind: agrees for operations with the same name and as many operands and results.
        operands, results: numbers of values; an annotation has its operand as its result, which is not listed.
        shardings: of its results, and then of the arguments of its body if it holds them.
        parent: the node around it, None for none.
        block: the number of its block in the regions of the node around it.
        is_annotation: whether it passes on its operand, or is a call, whose operands are what is returned.
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
    """A function that no other calls, or with `op` -1 what a module holds beside functions.

    `names` are those of arguments, empty where they have none; `nodes` has arguments and results among the others.
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
        roots: its functions, but for those that are called, and then what is beside functions.
        nodes: all nodes by their index.
        definers: for each value the node that it is a result of, None for one that is an argument of a block.
        users: for each value that has any the nodes that use it, annotations apart, with the number of the operand.
    """

    arrays: ModuleArrays
    roots: list[Root]
    nodes: list[Node]
    definers: list[Node | None]
    users: Mapping[int, Sequence[tuple[Node, int]]]

    def operation(self, node: Node) -> Any:
        """The operation of a node, or the function that it is an argument or result of."""
        return self.arrays.operation(node.op)
