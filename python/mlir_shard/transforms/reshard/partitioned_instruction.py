# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One op of a global program as a manual computation, with all else left global.

Shards that are not even are made so outside: operands are padded before, results cut after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.passes.registry import PassFailure
from mlir_shard.resharding.op_mesh import op_mesh
from mlir_shard.rules.builder import rank_of
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.transforms.reshard import stablehlo_pieces as hlo
from mlir_shard.transforms.reshard.collective_courses import Courses
from mlir_shard.transforms.reshard.compatible_ops import CompatibleOps
from mlir_shard.transforms.reshard.even_shards import even_shapes
from mlir_shard.transforms.reshard.local_body import LocalBody
from mlir_shard.transforms.reshard.moving_ops import Surroundings, exchange_around
from mlir_shard.transforms.reshard.sdy_reshard_to_collectives import reshards_to_collectives
from mlir_shard.transforms.reshard.sdy_resolve_permutation_factors import resolve_permutation_factors

MOVING = ("stablehlo.pad", "stablehlo.slice")


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A tensor around the op: how it is sharded for the computation, and its type there and outside."""

    value: Any
    sharding: TensorSharding
    type: Any
    padded: Any


def partition_alone(op: Any, around: Surroundings, *, by_exchange: bool) -> None:
    """Replaces an op with results by a manual computation along all axes that its tensors use.

    Raises PassFailure where it cannot be made local, or its tensors have no one mesh.
    """
    found = op_mesh([sharding_of(value) for value in (*op.operands, *op.results)], around.meshes)
    if found is None:
        raise _failure(op, "its operands and results have no mesh in common, or are on one device")
    ref, mesh = found
    operands = [_sharding(value, ref) for value in op.operands]
    results = [replace(_sharding(value, ref), unreduced_axes=()) for value in op.results]
    if any(sharding.unreduced_axes for sharding in operands):
        raise _failure(op, "an operand is partial, and a manual computation takes whole values")
    names = frozenset(axis.name for sharding in (*operands, *results) for axis in sharding.used_axes)
    around = replace(around, manual_axes=names)
    if op.name in MOVING and by_exchange and exchange_around(op, around, is_alone=True):
        return
    shapes = even_shapes(op, (*operands, *results), mesh)
    values = [*op.operands, *op.results]
    tensors = [
        _Tensor(value, sharding, value.type, value.type if shape is None else hlo.with_shape(value.type, shape))
        for value, sharding, shape in zip(values, (*operands, *results), shapes, strict=True)
    ]
    _Instruction(op, tensors[: len(operands)], tensors[len(operands) :], mesh, around).replace(by_exchange=by_exchange)


class _Instruction:
    def __init__(
        self, op: Any, operands: Sequence[_Tensor], results: Sequence[_Tensor], mesh: Mesh, around: Surroundings
    ) -> None:
        self._op = op
        self._operands = operands
        self._results = results
        self._part = around.part(mesh, ())
        self._around = around

    def replace(self, *, by_exchange: bool) -> None:
        """Puts the manual computation in the place of the op."""
        op = self._op
        module = self._outlined()
        function = next(iter(reversed(list(module.body.operations)))).operation
        CompatibleOps(function, sdy.meshes(module.operation), is_full=True).make()
        resolve_permutation_factors(module.operation, self._around, by_exchange=by_exchange)
        around = replace(self._around, meshes=sdy.meshes(module.operation))
        reshards_to_collectives(function, Courses(around.meshes, op.context, keeps_redundant=False))
        with ir.InsertionPoint(op), op.location:
            values = [self._padded(tensor) for tensor in self._operands]
            made = self._part.build_all(
                list(zip(values, (tensor.sharding for tensor in self._operands), strict=True)),
                [(tensor.padded, tensor.sharding) for tensor in self._results],
                lambda blocks: LocalBody(op, self._part, around).build(function.regions[0].blocks[0], blocks),
            )
            for tensor, value in zip(self._results, made, strict=True):
                if tensor.padded != tensor.type:
                    value = hlo.piece(value, [0] * tensor.type.rank, tensor.type.shape, tensor.sharding)
                tensor.value.replace_all_uses_with(value)
        op.erase()

    def _padded(self, tensor: _Tensor) -> Any:
        if tensor.padded == tensor.type:
            return tensor.value
        zero = hlo.zero(tensor.type.element_type)
        if zero is None:
            raise _failure(self._op, f"shards of {tensor.type} are not even, and there is no zero to pad it with")
        return hlo.pad_behind(tensor.value, hlo.scalar_constant(zero), tensor.padded.shape, tensor.sharding)

    def _outlined(self) -> Any:
        """A module with a function that does what the op does, on padded tensors."""
        op = self._op
        with op.location:
            module = ir.Module.create()
            types = [tensor.padded for tensor in self._operands]
            with ir.InsertionPoint(module.body):
                for one in sdy.enclosing_module(op).regions[0].blocks[0].operations:
                    if one.operation.name == "sdy.mesh":
                        one.operation.clone()
                type_ = ir.FunctionType.get(types, [tensor.padded for tensor in self._results])
                attributes = {"sym_name": ir.StringAttr.get("op"), "function_type": ir.TypeAttr.get(type_)}
                function = ir.Operation.create("func.func", attributes=attributes, regions=1)
            block = function.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
            for argument, tensor in zip(block.arguments, self._operands, strict=True):
                sdy.set_sharding(argument, tensor.sharding)
            for index, tensor in enumerate(self._results):
                sdy.set_result_sharding(function, index, tensor.sharding)
            with ir.InsertionPoint(block):
                ir.Operation.create("func.return", [], list(self._copy(block.arguments).results))
        return module

    def _copy(self, operands: Sequence[Any]) -> Any:
        op = self._op
        if op.name == "sdy.constant":
            attributes = {name: op.attributes[name] for name in op.attributes}
            value = attributes["value"]
            padded = self._results[0].padded
            if padded != value.type:
                if not value.is_splat:
                    raise _failure(op, "shards of it are not even, and its elements differ")
                attributes["value"] = ir.DenseElementsAttr.get_splat(padded, value.get_splat_value())
            return ir.Operation.create("stablehlo.constant", [padded], [], attributes)
        copied = op.clone().operation
        for index, value in enumerate(operands):
            copied.operands[index] = value
        for result, tensor in zip(copied.results, self._results, strict=True):
            result.set_type(tensor.padded)
        return copied


def _sharding(value: Any, ref: str | Mesh) -> TensorSharding:
    return sharding_of(value) or TensorSharding.fully_closed(rank_of(value.type), ref)


def _failure(op: Any, why: str) -> PassFailure:
    return PassFailure(f"'{op.name}' op cannot be partitioned alone: {why}", op)
