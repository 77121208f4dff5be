# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each change of sharding becomes the collectives that bring it about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.resharding.collective_course import collectives_between
from mlir_shard.resharding.op_mesh import is_on_one_device, mesh_of
from mlir_shard.resharding.sharding_steps import ReshardError
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.transforms.canonicalize.pattern import defining_op
from mlir_shard.transforms.operations import operations_named
from mlir_shard.transforms.reshard.collective_insertion import Collective, build, collective_of
from mlir_shard.transforms.shardings import meshes_around

BARRIER = "sdy.propagation_barrier"


@register
class ReshardToCollectives(Pass):
    """Replaces each `sdy.reshard` by slices, permutes, all-to-alls and gathers, and removes those that move nothing.

    A tensor without sharding is replicated. Collectives take what comes before `sdy.propagation_barrier`, as these say
    nothing once propagation is over. A reshard to or from a single device stays, and so does one between meshes that
    are not equal but for the order of devices, unless its result is replicated.
    """

    name = "sdy-reshard-to-collectives"
    anchor = "func.func"
    summary = "Converts reshards into collectives"

    keep_redundant_reshards: bool = option(False, "leave the reshards between equal shardings")

    def run(self, op: Any) -> bool:
        reshards = operations_named(op, "sdy.reshard")
        if not reshards:
            return False
        courses = _Courses(meshes_around(op), op.context, keeps_redundant=self.keep_redundant_reshards)
        is_changed = False
        for reshard in reshards:
            is_changed |= _replace(reshard, courses)
        return is_changed


def _replace(reshard: Any, courses: _Courses) -> bool:
    operand = value = reshard.operands[0]
    while (barrier := defining_op(value, BARRIER)) is not None:
        value = barrier.operands[0]
    source, target = sharding_of(value), reshard.attributes["sharding"]
    try:
        course = courses.course(source, target, value.type)
    except ReshardError as error:
        raise PassFailure(f"'sdy.reshard' op {error}", reshard) from error
    if course is None:
        return False
    with ir.InsertionPoint(reshard):
        # What moves nothing between replicated tensors does not undo a barrier either.
        result = operand if course.is_replicated else build(value, course.collectives, reshard.location)
    reshard.results[0].replace_all_uses_with(result)
    reshard.erase()
    return True


@dataclass(frozen=True, slots=True)
class _Course:
    collectives: tuple[Collective, ...]
    is_replicated: bool = False


class _Courses:
    """What becomes of reshards, decided once for each source, target and type."""

    def __init__(self, meshes: Mapping[str, Mesh], context: Any, *, keeps_redundant: bool) -> None:
        self._meshes = meshes
        self._context = context
        self._keeps_redundant = keeps_redundant
        self._known: dict[tuple[TensorSharding | None, Any, Any], _Course | None] = {}

    def course(self, source: TensorSharding | None, target: Any, type_: Any) -> _Course | None:
        """The collectives that take a value of a type to the sharding of an attribute; None for a reshard that stays.

        Raises ReshardError where there is no way between the shardings.
        """
        key = (source, target, type_)
        if key not in self._known:
            self._known[key] = self._decide(source, target.value, type_)
        return self._known[key]

    def _decide(self, source: TensorSharding | None, target: TensorSharding, type_: Any) -> _Course | None:
        if self._keeps_redundant and target.is_equivalent(source):
            return None
        if is_on_one_device(source, self._meshes) or is_on_one_device(target, self._meshes):
            return None
        if source is None:
            source = TensorSharding.fully_open(target.rank, target.mesh_or_ref)
        if target.is_fully_replicated:
            target = replace(target, mesh_or_ref=source.mesh_or_ref)
        mesh = mesh_of(source, self._meshes)
        target_mesh = mesh_of(target, self._meshes)
        if mesh is None or target_mesh is None or not mesh.equals(target_mesh, ignore_device_ids=True):
            return None
        if source.unreduced_axes != target.unreduced_axes:
            raise ReshardError(
                f"from {source} to {target}: both have to be unreduced along the same axes; "
                "sdy-insert-explicit-reshards inserts the reductions before it"
            )
        if source.is_fully_replicated and target.is_fully_replicated:
            return _Course((), is_replicated=True)
        if mesh == target_mesh:
            # Two names of one mesh: nothing moves, and no collective goes from one to the other.
            target = replace(target, mesh_or_ref=source.mesh_or_ref)
        steps = collectives_between(source, target, _shape(type_), mesh)
        return _Course(tuple(collective_of(step, self._context) for step in steps))


def _shape(type_: Any) -> tuple[int | None, ...]:
    return tuple(None if type_.is_dynamic_dim(dim) else type_.get_dim_size(dim) for dim in range(type_.rank))
