# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reasons for collectives, in words: the reshard, the partial sums or the plan that each one comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mlir_shard.explain.losses import Losses
from mlir_shard.explain.places import place_of, tags_of
from mlir_shard.explain.propagation_trace import OP_TAG, PropagationTrace, TracedNode
from mlir_shard.explain.recorded_moves import MOVE_TAG, OpenEnd, PlannedOp, RecordedReshard
from mlir_shard.explain.values import Cause, CauseKind, Lost
from mlir_shard.sharding import OpShardingRule, TensorSharding
from mlir_shard.sharding.axes import AxisRef
from mlir_shard.sharding.rule import factor_symbol
from mlir_shard.transforms.partition.op_decisions import Role

_ASKED = {"sdy.sharding_constraint": "constraint", "sdy.reshard": "reshard"}
_RETURNS = ("func.return", "sdy.return")


class Causes:
    """The causes of the collectives of one program."""

    def __init__(
        self,
        trace: PropagationTrace,
        losses: Losses,
        reshards: Sequence[RecordedReshard],
        plans: Mapping[int, PlannedOp],
    ) -> None:
        self._trace, self._losses = trace, losses
        self._reshards, self._plans = reshards, plans
        self._by_signature = {trace.signature(op): plan for op, plan in plans.items()}
        self._known: dict[tuple[str, int], Cause] = {}

    def of(self, collective: Any) -> tuple[Cause, ...]:
        """Returns the causes of a collective op of the local program: one for each reshard or op that it serves."""
        tags = list(dict.fromkeys(tags_of(collective.location)))
        chosen = [one for one in tags if one[0] == MOVE_TAG] or [one for one in tags if one[0] == OP_TAG][:1]
        if not chosen:
            return (Cause(CauseKind.PROGRAM, "it is in the program", collective.name, place_of(collective.location)),)
        return tuple(dict.fromkeys(self._cause(kind, number, collective) for kind, number in chosen))

    def _cause(self, kind: str, number: int, collective: Any) -> Cause:
        if kind == MOVE_TAG:
            if (kind, number) not in self._known:
                self._known[kind, number] = self._of_reshard(self._reshards[number])
            return self._known[kind, number]
        return self._of_op(number, collective)

    # Reshards of the global program.

    def _of_reshard(self, one: RecordedReshard) -> Cause:
        trace = self._trace
        tensor = self._tensor(one.definer)
        made_for = trace.op_name(one.made_for) if one.made_for >= 0 else ""
        if one.reduced or (one.source is not None and one.source.unreduced_axes):
            return self._of_partial_sums(one, tensor)
        if made_for in _ASKED:
            place = trace.place(one.made_for)
            text = (
                f"the {_ASKED[made_for]} at {place} shards {self._named(tensor)} as {_spelled(one.target)}; {_had(one)}"
            )
            return Cause(CauseKind.CONSTRAINT, text, made_for, place, tensor, _axes(one))
        user = one.user
        if made_for == "sdy.propagation_barrier":
            return self._of_mesh_change(one, tensor)
        if made_for.startswith("sdy.") and made_for not in ("sdy.manual_computation", "sdy.named_computation"):
            text = f"'{made_for}' is in the program"
            return Cause(CauseKind.PROGRAM, text, made_for, trace.place(one.made_for), tensor, _axes(one))
        if user is not None and user.name in _RETURNS:
            return self._of_return(one, user, tensor)
        if user is not None and user.name == "func.call":
            text = f"the function that is called at {user.place} expects operand {user.index} as {_spelled(one.target)}"
            return self._caused(CauseKind.FUNCTION_BOUNDARY, f"{text}; {_had(one)}", user, one, tensor)
        if user is None or self._is_of_result(one, tensor):
            return self._of_result(one, tensor)
        return self._of_operand(one, user, tensor)

    def _of_mesh_change(self, one: RecordedReshard, tensor: int | None) -> Cause:
        end = one.user or one.definer
        meshes = " to ".join("no mesh" if of is None else of.mesh_text for of in (one.source, one.target))
        text = f"{self._named(tensor)}, of '{one.definer.name}' at {one.definer.place}, moves from mesh {meshes}"
        text += f" for '{end.name}' at {end.place}" if one.user is not None else ""
        return self._caused(CauseKind.OTHER_MESH, text, end, one, tensor)

    def _is_of_result(self, one: RecordedReshard, tensor: int | None) -> bool:
        """Returns whether an op computes its result in another sharding than the result has."""
        declared = None if tensor is None else self._trace.sharding(tensor)
        if declared is None:
            return one.made_for == one.definer.op
        return _dims(declared) == _dims(one.target) != _dims(one.source)

    def _caused(
        self, kind: CauseKind, text: str, end: OpenEnd, one: RecordedReshard, tensor: int | None, alternative: str = ""
    ) -> Cause:
        return Cause(kind, text, end.name, end.place, tensor, _axes(one), alternative)

    def _tensor(self, end: OpenEnd) -> int | None:
        """Returns the number of the tensor at an end that defines it; None if the op is not in the traced program."""
        trace = self._trace
        if end.name == "func.func":
            return trace.tensor_of_argument(trace.function_of(end.op), end.index) if end.op >= 0 else None
        if end.op < 0 or trace.op_name(end.op) != end.name:
            return None
        return trace.tensor_of_result(end.op, end.index)

    def _named(self, tensor: int | None) -> str:
        return "a tensor" if tensor is None else self._trace.tensor(tensor).name

    def _rule(self, op: int) -> OpShardingRule | None:
        node = self._trace.node_of_op.get(op)
        return None if node is None else self._trace.nodes[node].rule

    def _of_partial_sums(self, one: RecordedReshard, tensor: int | None) -> Cause:
        definer = one.definer
        axes = _partial_axes(one)
        factors = self._reduced_factors(definer.op, axes)
        reduces = f"'{definer.name}' at {definer.place} reduces"
        along = f"factor {', '.join(factors)}, sharded on" if factors else "a dimension sharded on"
        text = f"{reduces} {along} {_listed(axes)}, so each device has a partial sum of {self._named(tensor)}"
        alternative = (
            "shard the operands on another factor, or replicate them, so that they are gathered or computed entirely"
        )
        return Cause(CauseKind.PARTIAL_SUM, text, definer.name, definer.place, tensor, axes, alternative)

    def _reduced_factors(self, op: int, axes: Iterable[AxisRef]) -> list[str]:
        rule = self._rule(op)
        if rule is None:
            return []
        node = self._trace.nodes[self._trace.node_of_op[op]]
        found = []
        for factor in rule.reduction_factors:
            for tensor, mapping in zip(node.operands, rule.operand_mappings, strict=True):
                sharding = self._trace.sharding(tensor) if tensor else None
                dims = [dim for dim, of in enumerate(mapping.dim_mappings) if factor in of.factor_indices]
                used = [] if sharding is None else _axes_of(sharding, dims)
                if any(axis.overlaps(other) for axis in axes for other in used):
                    found.append(factor_symbol(factor))
                    break
        # An op may be computed on other axes than its operands were sharded on.
        return found or [factor_symbol(factor) for factor in rule.reduction_factors]

    def _of_return(self, one: RecordedReshard, user: OpenEnd, tensor: int | None) -> Cause:
        if user.name == "func.return":
            function = self._trace.function_of(user.op) if user.op >= 0 else ""
            text = f"result {user.index} of @{function} is {_spelled(one.target)}; {_had(one)}"
            return self._caused(CauseKind.RESULT_SHARDING, text, user, one, tensor, self._alternative(one, tensor))
        text = f"the region at {user.place} returns value {user.index} as {_spelled(one.target)}; {_had(one)}"
        return self._caused(CauseKind.CARRIED, text, user, one, tensor)

    def _of_result(self, one: RecordedReshard, tensor: int | None) -> Cause:
        definer = one.definer
        text = (
            f"'{definer.name}' at {definer.place} computes {self._named(tensor)} as {_spelled(one.source)}, "
            f"and its sharding is {_spelled(one.target)}"
        )
        return self._caused(CauseKind.RESULT_SHARDING, text, definer, one, tensor, self._alternative(one, tensor))

    def _of_operand(self, one: RecordedReshard, user: OpenEnd, tensor: int | None) -> Cause:
        rule = self._rule(user.op) if user.op >= 0 else None
        needs = f"'{user.name}' at {user.place} needs operand {user.index}, {self._named(tensor)}, as"
        text = f"{needs} {_spelled(one.target)}; {_had(one)}"
        kind = CauseKind.OPERANDS_DISAGREE
        if rule is None or user.index >= len(rule.operand_mappings):
            if user.op >= 0 and self._trace.op_name(user.op).startswith(("stablehlo.while", "scf.")):
                kind = CauseKind.CARRIED
            return self._caused(kind, text, user, one, tensor, self._alternative(one, tensor))
        reasons, replicated = self._reasons(one, user, rule)
        if replicated:
            kind = CauseKind.NEEDS_REPLICATION
        text = f"{text}: {'; '.join(reasons)}" if reasons else text
        return self._caused(kind, text, user, one, tensor, self._alternative(one, tensor))

    def _reasons(self, one: RecordedReshard, user: OpenEnd, rule: OpShardingRule) -> tuple[list[str], bool]:
        """Returns why the sharding of an operand changes, by dimension, and whether the rule replicates a factor."""
        if one.source is None or one.target is None or one.source.rank != one.target.rank:
            return [], False
        node = self._trace.nodes[self._trace.node_of_op[user.op]]
        reasons, replicated = [], False
        mapping = rule.operand_mappings[user.index].dim_mappings
        for dim, (had, has) in enumerate(zip(one.source.dim_shardings, one.target.dim_shardings, strict=True)):
            if had.axes == has.axes or dim >= len(mapping):
                continue
            for factor in mapping[dim].factor_indices[:1]:
                symbol = f"factor {factor_symbol(factor)} (dimension {dim})"
                if factor in rule.need_replication_factors:
                    replicated = True
                    reasons.append(f"its sharding rule needs {symbol} replicated")
                    continue
                others = self._others(node, user.index, factor, rule)
                agree = any(axes == had.axes for _, axes in others)
                said = ", ".join(f"{role} is on {_listed(axes)}" for role, axes in others)
                if has.axes:
                    reasons.append(f"{symbol} is computed on {_listed(has.axes)}{said and f', and {said}'}")
                elif agree and factor in rule.reduction_factors:
                    reasons.append(f"to gather along {symbol} costs less than to reduce the partial sums")
                elif said:
                    reasons.append(f"the tensors disagree along {symbol}: {said}")
                else:
                    reasons.append(f"no other tensor of the op is sharded along {symbol}")
        return reasons, replicated

    def _others(
        self, node: TracedNode, operand: int, factor: int, rule: OpShardingRule
    ) -> list[tuple[str, tuple[AxisRef, ...]]]:
        """Returns the roles and axes of other tensors of an op that are sharded along a factor after propagation."""
        found = []
        for position, (tensor, mapping) in enumerate(zip(node.tensors, rule.tensor_mappings, strict=True)):
            sharding = self._trace.sharding(tensor) if tensor else None
            dims = [dim for dim, of in enumerate(mapping.dim_mappings) if factor in of.factor_indices]
            if position == operand or not dims or sharding is None or dims[0] >= sharding.rank:
                continue
            axes = sharding.dim_shardings[dims[0]].axes
            if axes:
                found.append((node.role(position), axes))
        return found

    def _alternative(self, one: RecordedReshard, tensor: int | None) -> str:
        """Returns how to avoid a reshard: the remedy of a lost axis, or the sharding that is needed; may be empty."""
        if tensor is None or one.target is None:
            return ""
        gained = [axis for axis in _all_axes(one.target) if axis not in _all_axes(one.source)]
        losses: list[Lost] = [lost for lost in self._losses.of(tensor) if any(lost.axis.overlaps(a) for a in gained)]
        if losses:
            return f"{losses[0].text}; {losses[0].remedy}"
        if gained:
            name = self._named(tensor)
            return f"shard {name} as {_spelled(one.target)} where it is defined"
        return ""

    # Collectives that partitioning adds.

    def _of_op(self, op: int, collective: Any) -> Cause:
        trace = self._trace
        name, place = trace.op_name(op), trace.place(op)
        plan = self._plans.get(op) or self._by_signature.get(trace.signature(op))
        kind, text, axes = self._by_plan(op, plan, collective)
        return Cause(kind, f"'{name}' at {place} {text}", name, place, self._first_tensor(op), axes)

    def _first_tensor(self, op: int) -> int | None:
        return self._trace.first_result(op)

    def _by_plan(self, op: int, plan: PlannedOp | None, collective: Any) -> tuple[CauseKind, str, tuple[AxisRef, ...]]:
        name = self._trace.op_name(op)
        if name == "func.func":
            text = "has arguments or results whose shards are in another order of devices, or uneven"
            return CauseKind.FUNCTION_BOUNDARY, text, ()
        if plan is None:
            return self._by_rule(op, collective)
        if plan.role is Role.DRAWN:
            return CauseKind.OP_EXCHANGES, "draws random numbers on the first device, which sends them to all", ()
        if plan.halos and collective.name.endswith(("update_halo", "collective_permute", "recv", "shift")):
            operand, dim, axes = plan.halos[0]
            text = f"has windows along dimension {dim} of operand {operand}, which is sharded on {_listed(axes)}: "
            return CauseKind.HALO, text + "a device needs elements of its neighbours", axes
        if plan.combined or plan.partial:
            axes = plan.combined or plan.partial
            text = f"reduces a dimension sharded on {_listed(axes)}, so each device has a partial result"
            return CauseKind.PARTIAL_SUM, text, axes
        if plan.gathered and not plan.has_rule and plan.role is Role.KEPT and name not in _RETURNS:
            return CauseKind.NO_RULE, "has no sharding or partition rule: its operands are gathered", ()
        if plan.gathered and (name in _RETURNS or plan.role is Role.PASSED_ON):
            numbers = ", ".join(map(str, plan.gathered))
            return CauseKind.CARRIED, f"passes values {numbers} through a region in another sharding", ()
        if plan.gathered:
            numbers = ", ".join(map(str, plan.gathered))
            return CauseKind.OPERANDS_DISAGREE, f"needs operands {numbers} in another sharding", ()
        if plan.changed:
            return CauseKind.RESULT_SHARDING, "computes a result in another sharding than the result has", ()
        return self._by_rule(op, collective)

    def _by_rule(self, op: int, collective: Any) -> tuple[CauseKind, str, tuple[AxisRef, ...]]:
        """Returns kind, text and axes of a cause by the sharding rule: partial results, or elements that are moved."""
        rule = self._rule(op)
        if rule is None:
            return CauseKind.OP_EXCHANGES, "exchanges elements of shards with other devices", ()
        node = self._trace.nodes[self._trace.node_of_op[op]]
        by_factor: dict[int, list[AxisRef]] = {}
        for tensor, mapping in zip(node.tensors, rule.tensor_mappings, strict=True):
            sharding = self._trace.sharding(tensor) if tensor else None
            for dim, of in enumerate(mapping.dim_mappings if sharding is not None else ()):
                for factor in of.factor_indices:
                    by_factor.setdefault(factor, []).extend(_axes_of(sharding, (dim,)) if sharding else ())
        reduced = tuple(dict.fromkeys(a for factor in rule.reduction_factors for a in by_factor.get(factor, ())))
        if reduced and "reduce" in collective.name:
            symbols = ", ".join(factor_symbol(factor) for factor in rule.reduction_factors if by_factor.get(factor))
            text = f"reduces factor {symbols}, sharded on {_listed(reduced)}, so each device has a partial result"
            return CauseKind.PARTIAL_SUM, text, reduced
        axes = tuple(dict.fromkeys(axis for found in by_factor.values() for axis in found))
        return CauseKind.OP_EXCHANGES, f"moves elements between shards along {_listed(axes)}", axes


def _axes_of(sharding: TensorSharding, dims: Iterable[int]) -> list[AxisRef]:
    return [axis for dim in dims if dim < sharding.rank for axis in sharding.dim_shardings[dim].axes]


def _all_axes(sharding: TensorSharding | None) -> tuple[AxisRef, ...]:
    return () if sharding is None else sharding.sharding_axes


def _dims(sharding: TensorSharding | None) -> tuple[tuple[AxisRef, ...], ...]:
    return () if sharding is None else tuple(dim.axes for dim in sharding.dim_shardings)


def _axes(one: RecordedReshard) -> tuple[AxisRef, ...]:
    """Returns the axes of the dimensions that a reshard changes; all axes if the ranks differ."""
    if one.source is None or one.target is None or one.source.rank != one.target.rank:
        return tuple(dict.fromkeys((*_all_axes(one.source), *_all_axes(one.target))))
    changed = [
        axis
        for had, has in zip(one.source.dim_shardings, one.target.dim_shardings, strict=True)
        if had.axes != has.axes
        for axis in (*had.axes, *has.axes)
    ]
    return tuple(dict.fromkeys(changed))


def _partial_axes(one: RecordedReshard) -> tuple[AxisRef, ...]:
    if one.reduced:
        return one.reduced
    had = () if one.source is None else one.source.unreduced_axes
    left = () if one.target is None else one.target.unreduced_axes
    return tuple(axis for axis in had if axis not in left) or had


def _had(one: RecordedReshard) -> str:
    return f"it is {_spelled(one.source)}"


def _spelled(sharding: TensorSharding | None) -> str:
    """Returns the dimensions of a sharding as text, `[{"data"}, {}]`, or `replicated`."""
    if sharding is None or sharding.is_fully_replicated:
        return "replicated"
    return f"[{', '.join(str(dim.closed()) for dim in sharding.dim_shardings)}]"


def _listed(axes: Iterable[AxisRef]) -> str:
    return ", ".join(map(str, axes)) or "no axis"
