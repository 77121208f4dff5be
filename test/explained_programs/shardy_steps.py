# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the origins of axes in Shardy's debugging attributes with the chains of explanations.

Both sides propagate the same module: a program after the passes of the pipeline before propagation, without dead code.
`debug-sharding-origins` gives the origin of each axis of a tensor, `debug-propagation-edge-sharding` the steps through
each op. A chain agrees if it begins at that origin, if each of its steps is one of Shardy's, with its number, through
the same op and between the same tensors, and if its last step is the first that moves the axis to the tensor.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from differential.sides import Shardy

import mlir_shard
from explained_programs.shardy_record import PROPAGATION, Recorded, Traced, origin_of, traced
from mlir_shard import ParseError
from mlir_shard.explain.values import AnnotationKind, Chain, Link, Tensor
from mlir_shard.ir.editing import functions
from mlir_shard.passes.instrumentation import Instrumentation
from mlir_shard.passes.registry import PassFailure
from mlir_shard.sharding.axes import AxisRef
from mlir_shard.sharding.propagation_edges import computation_input_origin, input_origin, output_origin
from mlir_shard.transforms.debug_record import PROPAGATION_EDGES, SHARDING_ORIGINS
from mlir_shard.transforms.shardings import Side, shardings_of

_CONSTRAINTS = "sdy-apply-sharding-constraints"
_ORIGINS, _EDGES = "debug-sharding-origins=true", "debug-propagation-edge-sharding=true"

OTHER_ANNOTATION = (
    "a tensor of the chain has several annotations, of itself, of a constraint or a manual computation that it goes "
    "into, or of the result of the function that it becomes: Shardy names the first in an order of its own, whichever "
    "the axis is from"
)
IN_GROUP = "the axis comes from a member of a sharding group, for which Shardy records nothing"
OF_FUNCTION = (
    "steps to the results of a function: Shardy notes those of all results as of the first, and of several of one axis "
    "only one"
)
OTHER_NUMBER = "the same step with another number, behind edges that are visited in another order"
RETURNED_AGAIN = "Shardy notes the origins of a value that a function returns several times with one of the results"
UNSET = "an op is annotated, and Shardy, which has no origins for ops, reads memory that it has not set"
UNKNOWN = "unknown"
_UNRECORDED = {"sdy.sharding_group": IN_GROUP, "func.func": OF_FUNCTION}


@dataclass
class Agreement:
    """Counts of axes of tensors.

    Attributes:
        programs: the compared programs; refused: the other programs, by reason.
        otherwise_sharded: tensors that Shardy shards differently, whose axes are not counted.
        axes: the compared axes of dimensions of tensors.
        same_steps: axes with the same steps; other_steps: axes with different steps, by the kind of difference.
        same_origins: axes with the same origin; other_origins: axes with different origins, by the kind of difference;
            without_origin: axes from annotations of ops, for which Shardy has no origins.
        lines: descriptions of the differences of unknown kinds.
    """

    programs: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    otherwise_sharded: int = 0
    axes: int = 0
    same_steps: int = 0
    other_steps: Counter[str] = field(default_factory=Counter)
    same_origins: int = 0
    without_origin: int = 0
    other_origins: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Agreement)))


@dataclass
class _BeforePropagation(Instrumentation):
    """Keeps the module before propagation, and the arguments of functions that had shardings before constraints were
    applied to them."""

    text: str | None = None
    annotated: frozenset[tuple[str, int]] = frozenset()

    def before_pass(self, title: str, name: str, op: Any) -> None:
        if name == _CONSTRAINTS:
            self.annotated = frozenset(_annotated(op))
        elif name == PROPAGATION:
            self.text = mlir_shard.print_module(op)


def _annotated(module: Any) -> Iterator[tuple[str, int]]:
    for name, function in functions(module).items():
        for index, sharding in enumerate(shardings_of(function, Side.ARGUMENTS)):
            if sharding is not None:
                yield name, index


def agreement(text: str, shardy: Shardy) -> Agreement:
    """Compares the chains of a program with Shardy's record."""

    def refused(why: str) -> Agreement:
        return Agreement(refused=Counter([why]))

    try:
        module = mlir_shard.parse(text, mlir_shard.create_context())
    except mlir_shard.ParseError:
        return refused("not valid here")
    before = _BeforePropagation()
    with contextlib.suppress(PassFailure):
        mlir_shard.run(module, "builtin.module(shard-propagate)", instrumentations=[before])
    if before.text is None:
        return refused("refused before propagation")
    live = shardy.run(before.text, "builtin.module(trivial-dce)").text
    if live is None:
        return refused("dialects or types that jaxlib's Shardy does not have")
    if SHARDING_ORIGINS in live or PROPAGATION_EDGES in live:
        return refused("has attributes of an earlier propagation")
    # Shardy's verifier refuses the steps through an edge with several sources that its propagation records.
    options = (f"{_ORIGINS} {_EDGES}", _EDGES)
    found = (shardy.run(live, f"builtin.module({PROPAGATION}{{{one}}})", verifies=False).text for one in options)
    recorded = next(((text, has) for text, has in zip(found, (True, False), strict=True) if text is not None), None)
    if recorded is None:
        return refused("Shardy fails")
    try:
        ours = traced(live, before.annotated)
    except PassFailure:
        return refused("not valid after propagation")
    try:
        theirs = Recorded(recorded[0], ours)
    except ParseError:
        return refused("Shardy makes a module that is not valid here")
    if theirs.op_names != ours.op_names:
        return refused("Shardy erased ops")
    return _Comparison(ours, theirs, has_origins=recorded[1]).run()


class _Comparison:
    """A comparison of the chains of one propagation with Shardy's record."""

    def __init__(self, traced: Traced, theirs: Recorded, has_origins: bool) -> None:
        self._traced, self._theirs, self._has_origins = traced, theirs, has_origins
        self._found = Agreement(programs=1)

    def run(self) -> Agreement:
        for tensor in self._traced.trace.tensors():
            if self._theirs.sharding(tensor) != tensor.sharding:
                self._found.otherwise_sharded += 1
                continue
            for chain in self._traced.chains.chains(tensor.number):
                self._compare(tensor, chain)
        return self._found

    def _compare(self, tensor: Tensor, chain: Chain) -> None:
        found = self._found
        found.axes += 1
        for link in chain.links:
            if not self._has_step(link, chain.axis):
                found.other_steps[self._other_step(tensor, chain, link)] += 1
                break
        else:
            last = chain.links[-1] if chain.links else None
            first = self._theirs.first_step(tensor.number, chain.axis)
            if last is None or last.op == "func.func" or last.step == first:
                found.same_steps += 1
            else:
                found.other_steps[self._other(tensor, chain, f"first in step {first}, here {last}")] += 1
        if self._has_origins:
            self._compare_origins(tensor, chain)

    def _other_step(self, tensor: Tensor, chain: Chain, link: Link) -> str:
        if link.op in _UNRECORDED:
            return _UNRECORDED[link.op]
        if self._has_move(link, chain.axis):
            return OTHER_NUMBER
        return self._other(tensor, chain, f"no step {link}")

    def _compare_origins(self, tensor: Tensor, chain: Chain) -> None:
        found = self._found
        theirs = origin_of(self._theirs.origins.get(tensor.number, {}), chain.axis)
        path = [link.source for link in chain.links]
        beginning = self._traced.trace.tensor(path[0]) if path else tensor
        ours = self._origin(chain, beginning)
        if theirs is not None and theirs == ours:
            found.same_origins += 1
        elif any(theirs in self._names_around(one) for one in (*map(self._traced.trace.tensor, path), tensor)):
            found.other_origins[OTHER_ANNOTATION] += 1
        elif not ours:
            found.without_origin += 1
        elif theirs is None and self._is_returned_again(tensor):
            found.other_origins[RETURNED_AGAIN] += 1
        elif theirs is None and any(map(self._traced.trace.group_of, (*path, tensor.number))):
            found.other_origins[IN_GROUP] += 1
        elif self._annotates_ops:
            found.other_origins[UNSET] += 1
        else:
            found.other_origins[self._other(tensor, chain, f"from {theirs}, here {ours}")] += 1

    @cached_property
    def _annotates_ops(self) -> bool:
        chains, trace = self._traced.chains, self._traced.trace
        return any(
            one.annotation.kind is AnnotationKind.OP for of in trace.tensors() for one in chains.chains(of.number)
        )

    def _is_returned_again(self, tensor: Tensor) -> bool:
        returns = list(self._traced.reader.graph.returns)
        returned = [node.operands[0] for node in returns if node.results[0] == tensor.number]
        return sum(node.operands[0] in returned for node in returns) > 1

    def _names_around(self, tensor: Tensor) -> Iterator[str]:
        """Yields Shardy's names of the annotations of a tensor, of ops around it, and of results of its function."""
        reader, names = self._traced.reader, self._theirs.names
        number = tensor.number
        if number >= reader.first_result:
            returned = next(node.operands[0] for node in reader.graph.returns if node.results[0] == number)
            yield from self._names_around(self._traced.trace.tensor(returned))
            return
        if tensor.op == "argument":
            yield input_origin(tensor.index)
        for op, position in reader.arrays.uses(number - 1):
            yield names.get(op, "")
            yield computation_input_origin(names.get(op, ""), position)
            if self._theirs.op_names[op] == "func.return":
                yield output_origin(position)
        definer = reader.arrays.definers[number - 1]
        if definer >= 0:
            yield self._theirs.own_origin(definer)

    def _has_step(self, link: Link, axis: AxisRef) -> bool:
        move = (self._op_of(link), link.source_role, link.target_role)
        return any(step == link.step and moved.overlaps(axis) for step, moved in self._theirs.steps.get(move, ()))

    def _has_move(self, link: Link, axis: AxisRef) -> bool:
        """Returns True if any step moves the axis through the same op between the same tensors."""
        move = (self._op_of(link), link.source_role, link.target_role)
        return any(moved.overlaps(axis) for _, moved in self._theirs.steps.get(move, ()))

    def _op_of(self, link: Link) -> int:
        trace = self._traced.trace
        around = {number for number, _ in trace.nodes_of.get(link.target, ())}
        found = [
            trace.nodes[number]
            for number, position in trace.nodes_of.get(link.source, ())
            if number in around and trace.nodes[number].role(position) == link.source_role
        ]
        return next((node.op for node in found if trace.place(trace.owner(node.op)) == link.place), -1)

    def _origin(self, chain: Chain, of: Tensor) -> str:
        """Returns Shardy's name of the annotation of a chain that begins at a tensor, or an empty text."""
        kind, place = chain.annotation.kind, chain.annotation.place
        if kind is AnnotationKind.ARGUMENT:
            return input_origin(of.index)
        if kind is AnnotationKind.RESULT:
            return output_origin(of.index)
        if kind is AnnotationKind.CONSTRAINT:
            names = self._theirs.names.items()
            return next(name for op, name in names if self._traced.trace.place(op) == place)
        is_manual = kind is AnnotationKind.MANUAL
        return self._theirs.own_origin(self._traced.reader.arrays.definers[of.number - 1]) if is_manual else ""

    def _other(self, tensor: Tensor, chain: Chain, what: str) -> str:
        self._found.lines.append(f"{tensor.name} at {tensor.place}, {chain.axis}: {what}; {chain.annotation.text}")
        return UNKNOWN
