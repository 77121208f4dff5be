# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Collectives: their axes lead from the sharding their operand has to `out_sharding`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.dialects.verifiers.attributes import reduction_op, required
from mlir_shard.dialects.verifiers.symbols import bound_manual_axes, find_mesh
from mlir_shard.dialects.verifiers.types import shape_of
from mlir_shard.dialects.verifiers.violation import Check, Violation, require
from mlir_shard.sharding import AllToAllParamList, AxisRefList, ListOfAxisRefLists, Mesh, TensorSharding
from mlir_shard.sharding.verify import (
    check_all_gather,
    check_all_reduce,
    check_all_slice,
    check_all_to_all,
    check_collective,
    check_collective_permute,
    check_reduce_scatter,
    check_replicated_to_unreduced,
    check_sharded_to_unreduced,
    check_tensor_sharding,
)


@dataclass(frozen=True, slots=True)
class Shardings:
    """What a collective changes: from `operand` on `operand_mesh` to `result` on `mesh`."""

    operand: TensorSharding | None
    operand_mesh: Mesh | None
    result: TensorSharding
    mesh: Mesh

    @property
    def known_operand(self) -> TensorSharding:
        """The operand's sharding of a collective that needs one."""
        if self.operand is None:
            raise Violation("needs an operand with a sharding")
        return self.operand


def _shardings(op: Any, operand_may_lack_sharding: bool, meshes_may_differ: bool) -> Shardings | None:
    """The shardings around a collective, having passed what every collective keeps.

    None where the operand's sharding is itself wrong, which is reported where it is attached.
    """
    operand = sharding_of(op.operands[0])
    result = required(op, "out_sharding", TensorSharding)
    operand_mesh = None if operand is None else find_mesh(operand, op)
    mesh = find_mesh(result, op)
    shape = shape_of(op.results[0].type)
    require(
        check_collective(
            operand,
            result,
            operand_mesh,
            mesh,
            shape,
            operand_may_lack_sharding=operand_may_lack_sharding,
            meshes_may_differ=meshes_may_differ,
            manual_axes=bound_manual_axes(op),
        )
    )
    if mesh is None or (operand is not None and check_tensor_sharding(operand, operand_mesh, shape) is not None):
        return None
    return Shardings(operand, operand_mesh, result, mesh)


def _collective(
    check: Callable[[Any, Shardings], str | None],
    *,
    operand_may_lack_sharding: bool = False,
    meshes_may_differ: bool = False,
) -> Check:
    def check_op(op: Any) -> None:
        shardings = _shardings(op, operand_may_lack_sharding, meshes_may_differ)
        if shardings is not None:
            require(check(op, shardings))

    return check_op


def _all_gather(op: Any, by: Shardings) -> str | None:
    axes = required(op, "gathering_axes", ListOfAxisRefLists)
    return check_all_gather(by.known_operand, by.result, axes, by.mesh)


def _all_slice(op: Any, by: Shardings) -> str | None:
    return check_all_slice(by.operand, by.result, required(op, "slicing_axes", ListOfAxisRefLists), by.mesh)


def _all_to_all(op: Any, by: Shardings) -> str | None:
    return check_all_to_all(by.known_operand, by.result, required(op, "params", AllToAllParamList), by.mesh)


def _collective_permute(op: Any, by: Shardings) -> str | None:
    if by.operand_mesh is None:
        raise Violation("needs an operand with a sharding")
    return check_collective_permute(by.known_operand, by.result, by.operand_mesh, by.mesh)


def _all_reduce(op: Any, by: Shardings) -> str | None:
    axes = required(op, "reduction_axes", AxisRefList)
    return check_all_reduce(by.operand, by.result, axes, reduction_op(op), by.mesh)


def _reduce_scatter(op: Any, by: Shardings) -> str | None:
    axes = required(op, "reduce_scatter_axes", ListOfAxisRefLists)
    return check_reduce_scatter(by.operand, by.result, axes, reduction_op(op), by.mesh)


def _sharded_to_unreduced(op: Any, by: Shardings) -> str | None:
    axes = required(op, "axes", ListOfAxisRefLists)
    return check_sharded_to_unreduced(by.known_operand, by.result, axes, by.mesh)


def _replicated_to_unreduced(op: Any, by: Shardings) -> str | None:
    axes = required(op, "axes", AxisRefList)
    return check_replicated_to_unreduced(by.known_operand, by.result, axes, by.mesh)


COLLECTIVES = {
    "sdy.all_gather": _collective(_all_gather),
    "sdy.all_slice": _collective(_all_slice, operand_may_lack_sharding=True),
    "sdy.all_to_all": _collective(_all_to_all),
    "sdy.collective_permute": _collective(_collective_permute, meshes_may_differ=True),
    "sdy.all_reduce": _collective(_all_reduce, operand_may_lack_sharding=True),
    "sdy.reduce_scatter": _collective(_reduce_scatter, operand_may_lack_sharding=True),
    "sdy.sharded_to_unreduced": _collective(_sharded_to_unreduced),
    "sdy.replicated_to_unreduced": _collective(_replicated_to_unreduced),
}
