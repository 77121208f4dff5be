# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Axes of neighbours that a tensor could have had but lacks, with the reason for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlir_shard.explain.chains import Chains, dim_with
from mlir_shard.explain.propagation_trace import PropagationTrace, TracedNode
from mlir_shard.explain.values import Annotation, LossReason, Lost
from mlir_shard.sharding import Mesh, PropagationDirection, TensorSharding
from mlir_shard.sharding.axes import Axes, AxisRef, any_overlap, greatest_common_prefix, total_size
from mlir_shard.sharding.projection import ShardingProjection
from mlir_shard.sharding.rule import OpShardingRule, factor_symbol
from mlir_shard.transforms.shardings import common_mesh


@dataclass(frozen=True, slots=True)
class _Missed:
    """An axis that one tensor of a node, by position, has along a factor, and another one lacks."""

    axis: AxisRef
    factor: int
    source: int


class Losses:
    """The axes that tensors of one propagation lost."""

    def __init__(self, trace: PropagationTrace, chains: Chains) -> None:
        self._trace, self._chains = trace, chains
        self._missed: dict[object, tuple[tuple[_Missed, ...], ...]] = {}

    def of(self, tensor: int) -> tuple[Lost, ...]:
        """Returns the axes that neighbours of a tensor are sharded on and the tensor is not, each with one reason.

        If several neighbours have an axis that the tensor lacks, the first one in the program counts.
        """
        found: dict[tuple[AxisRef, int], Lost] = {}
        for number, position in self._trace.nodes_of.get(tensor, ()):
            node = self._trace.nodes[number]
            for missed in self._missed_by(node)[position]:
                lost = self._lost(node, position, missed)
                if lost is not None:
                    found.setdefault((lost.axis, lost.dim), lost)
        return tuple(sorted(found.values(), key=lambda one: (one.dim, str(one.axis))))

    def _missed_by(self, node: TracedNode) -> tuple[tuple[_Missed, ...], ...]:
        """Returns the missed axes of each tensor of a node, which are computed once for equal rules and shardings."""
        shardings = tuple(self._sharding(tensor) for tensor in node.tensors)
        key = (id(node.rule), shardings)
        if key not in self._missed:
            self._missed[key] = self._compare(node, shardings)
        return self._missed[key]

    def _sharding(self, tensor: int) -> TensorSharding | None:
        return self._trace.sharding(tensor) if tensor else None

    def _compare(
        self, node: TracedNode, shardings: tuple[TensorSharding | None, ...]
    ) -> tuple[tuple[_Missed, ...], ...]:
        nothing = ((),) * len(shardings)
        found = common_mesh(shardings, self._trace.meshes)
        if found is None or node.kind.frame is not None:
            return nothing
        rule, count = node.rule, len(node.operands)
        projection = ShardingProjection.build(shardings[:count], shardings[count:], rule, found[1])
        return tuple(tuple(_missed_axes(projection, position, rule, found[1])) for position in range(len(shardings)))

    def _lost(self, node: TracedNode, position: int, missed: _Missed) -> Lost | None:
        trace, rule = self._trace, node.rule
        tensor, source = node.tensors[position], node.tensors[missed.source]
        sharding = trace.sharding(tensor)
        dim = next(
            (
                dim
                for dim, of in enumerate(rule.tensor_mappings[position].dim_mappings)
                if missed.factor in of.factor_indices
            ),
            None,
        )
        if dim is None or source == tensor or not tensor:
            return None
        reason, why, remedy, winner = self._reason(node, position, missed, dim, sharding)
        shown = trace.owner(node.op)
        name, place, symbol = trace.op_name(shown), trace.place(shown), factor_symbol(missed.factor)
        where = f"{missed.axis} shards factor {symbol} of {name} at {place} in {node.role(missed.source)}"
        text = f"{where}, {trace.tensor(source).name}: {why}"
        return Lost(missed.axis, dim, reason, text, why, remedy, name, place, symbol, source, winner)

    def _reason(
        self, node: TracedNode, position: int, missed: _Missed, dim: int, sharding: TensorSharding | None
    ) -> tuple[LossReason, str, str, Annotation | None]:
        tensor = node.tensors[position]
        axis, elsewhere = missed.axis, "annotate the tensor with the axis"
        if sharding is not None:
            used = dim_with(sharding, axis)
            if used is not None and used != dim:
                chain = self._chains.chain(tensor, _axis_of(sharding, used, axis), used)
                rival = self._chains.chain(node.tensors[missed.source], axis, self._source_dim(node, missed, axis))
                why = f"the axis shards dimension {used} here, {_by_priority(chain.annotation, rival.annotation)}"
                remedy = (
                    f"remove the axis from {_annotated(chain.annotation)}, or give {_annotated(rival.annotation)} "
                    "a lower priority number"
                )
                return LossReason.USED, why, remedy, chain.annotation
            if any_overlap((axis,), sharding.replicated_axes):
                given = self._chains.annotation(tensor, None, dim)
                why = f"the tensor is explicitly replicated along it by {_annotated(given)}"
                return LossReason.REPLICATED, why, "remove the axis from `replicated`", given
            own = sharding.dim_shardings[dim]
            if own.is_closed:
                given = self._chains.annotation(tensor, None, dim)
                why = f"dimension {dim} is closed by {_annotated(given)}"
                return LossReason.CLOSED, why, f"open dimension {dim}: {own.opened()}", given
            if own.axes:
                chain = self._chains.chain(tensor, own.axes[0], dim)
                axes = ", ".join(map(str, own.axes))
                why = f"dimension {dim} is sharded on {axes}, from {_annotated(chain.annotation)}"
                remedy = f"remove {axes} there, or give the other annotation a lower priority number"
                return LossReason.OTHER_AXES, why, remedy, chain.annotation
        if node.rule.is_blocked(missed.factor):
            why = "propagation skips this factor, because sharding it requires communication"
            return LossReason.BLOCKED, why, elsewhere, None
        direction = node.kind.fixed_direction
        if direction is not None and direction is not PropagationDirection.BOTH:
            why = f"a propagation barrier allows only {direction.name.lower()} propagation"
            return LossReason.DIRECTION, why, "allow both directions at the barrier", None
        if not self._divides(node, missed):
            why = "the axis does not divide the factor, and other factors of the dimension follow it"
            return LossReason.DIVISIBILITY, why, "use an axis, or a sub-axis, whose size divides the dimension", None
        why = "the tensors of the op disagree along the factor"
        return LossReason.ORDER, why, elsewhere, None

    def _source_dim(self, node: TracedNode, missed: _Missed, axis: AxisRef) -> int:
        sharding = self._trace.sharding(node.tensors[missed.source])
        found = dim_with(sharding, axis)
        return 0 if found is None else found

    def _divides(self, node: TracedNode, missed: _Missed) -> bool:
        """Returns whether the axis divides the factor; True if no dimension has other factors besides this one."""
        dims = (dim.factor_indices for mapping in node.rule.tensor_mappings for dim in mapping.dim_mappings)
        # The rule of a node is shared by nodes that propagate equally, so its other factors may have other sizes.
        if not any(len(factors) > 1 and missed.factor in factors for factors in dims):
            return True
        sharding = self._trace.sharding(node.tensors[missed.source])
        found = common_mesh([sharding], self._trace.meshes)
        return found is None or node.rule.factor_sizes[missed.factor] % missed.axis.size(found[1]) == 0


def _missed_axes(projection: ShardingProjection, position: int, rule: OpShardingRule, mesh: Mesh) -> Iterator[_Missed]:
    """Yields the first axis along each factor of a tensor that another tensor has and this one lacks."""
    tensor = projection.tensors[position]
    for factor in range(rule.num_factors):
        own = tensor.factors[factor]
        if own is None:
            continue
        for source, other in enumerate(projection.tensors):
            theirs = other.factors[factor]
            if source == position or theirs is None:
                continue
            axis = _next_axis(own.all_axes, theirs.axes, mesh)
            if axis is not None:
                yield _Missed(axis, factor, source)
                break


def _next_axis(own: Axes, theirs: Axes, mesh: Mesh) -> AxisRef | None:
    """Returns the first axis by which `theirs` extends, or differs from, `own`; None if no axis does."""
    common = greatest_common_prefix(own, theirs)
    if total_size(common, mesh) >= total_size(theirs, mesh):
        return None
    return next((axis for axis in theirs if axis not in common), None)


def _axis_of(sharding: TensorSharding, dim: int, axis: AxisRef) -> AxisRef:
    return next(one for one in sharding.dim_shardings[dim].axes if one.overlaps(axis))


def _annotated(annotation: Annotation) -> str:
    return f"the {annotation.text} at {annotation.place}"


def _by_priority(winner: Annotation, loser: Annotation) -> str:
    if winner.priority != loser.priority:
        return f"from {_annotated(winner)}, of priority {winner.priority} against {loser.priority}"
    return f"from {_annotated(winner)}, which came first"
