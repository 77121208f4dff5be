# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partitions some ops, each as a manual computation, and leaves all others to another partitioner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.data_flow import sharding_of
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.editing import children, operations_named, ops_below, replace_with, terminator
from mlir_shard.ir.values import defining_op, has_one_use
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import Pass, PassFailure, register
from mlir_shard.resharding.operator.common_axes import op_mesh
from mlir_shard.rules.builder import rank_of
from mlir_shard.rules.constants import CONSTANT_OPS
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.transforms.collectives.channels import Channels
from mlir_shard.transforms.collectives.stablehlo import StablehloProgram
from mlir_shard.transforms.gathers import Gathers, remarks_above
from mlir_shard.transforms.halo.halo_exchange import ManualPart
from mlir_shard.transforms.halo.moving_ops import Surroundings, exchange_around
from mlir_shard.transforms.halo.sdy_resolve_permutation_factors import resolve_permutation_factors
from mlir_shard.transforms.limits import check_sizes, is_by_replica
from mlir_shard.transforms.named_ops import RESHARDING_OPS
from mlir_shard.transforms.padding.padded_values import PaddedValues
from mlir_shard.transforms.padding.sdy_pad_for_divisibility import pad_function
from mlir_shard.transforms.partition.sdy_convert_global_to_local import convert_global_to_local
from mlir_shard.transforms.reshard.collective_plans import CollectivePlans
from mlir_shard.transforms.reshard.compatible_ops import CompatibleOps
from mlir_shard.transforms.reshard.sdy_reshard_to_collectives import reshards_to_collectives
from mlir_shard.transforms.shardings import listed_meshes

MOVING = ("stablehlo.pad", "stablehlo.slice")


def partition_alone(op: Any, around: Surroundings, gathers: Gathers, *, by_exchange: bool) -> None:
    """Replaces an op with results by a manual computation along all axes that its tensors use.

    Raises PassFailure if it cannot be made local, or its tensors have no common mesh.
    """
    for index, value in enumerate(op.operands):
        if str(value.type).startswith("!tosa.shape"):
            raise _failure(op, f"operand {index} of {value.type} must be constant, but would become an argument")
    _sink_constants(op)
    found = op_mesh([sharding_of(value) for value in (*op.operands, *op.results)], around.meshes)
    if found is None:
        raise _failure(op, "its operands and results have no common mesh, or are on a single device")
    ref, mesh = found
    if not mesh.has_same_devices(Mesh(mesh.axes)):
        raise _failure(op, f"its mesh has only a part of the program's devices, {list(mesh.devices)}")
    operands = [_sharding(value, ref) for value in op.operands]
    results = [replace(_sharding(value, ref), unreduced_axes=()) for value in op.results]
    if any(sharding.unreduced_axes for sharding in operands):
        raise _failure(op, "an operand is partial, but a manual computation requires reduced values")
    for value, sharding in zip((*op.operands, *op.results), (*operands, *results), strict=True):
        _check_static(op, value.type, sharding, mesh)
    names = frozenset(axis.name for sharding in (*operands, *results) for axis in sharding.used_axes)
    around = replace(around, manual_axes=names)
    if op.name in MOVING and by_exchange and exchange_around(op, around, is_alone=True):
        return
    try:
        module = _local_module(op, operands, results, around, gathers, by_exchange=by_exchange)
    except PassFailure as error:
        raise _failure(op, error.message.removeprefix(f"'{op.name}' cannot be partitioned: ")) from error
    (function,) = children(module.operation, "func.func")
    last = terminator(function)
    for index, sharding in enumerate(results):
        _return_uncut(last, index, sharding)
    with ir.InsertionPoint(op), op.location:
        part, sizes = around.part(mesh, ()), PaddedValues(around.meshes)
        pairs = zip(op.operands, operands, strict=True)
        given = [(_padded(op, value, sharding, sizes), sharding) for value, sharding in pairs]
        made = [(_global_type(value.type, one, part), one) for value, one in zip(last.operands, results, strict=True)]
        new = part.build_all(given, made, lambda local: _cloned(function, local))
        new = [
            value if value.type == old.type else stablehlo.first(value, old.type.shape, sharding)
            for old, value, sharding in zip(op.results, new, results, strict=True)
        ]
    replace_with(op, new)


def _sink_constants(op: Any) -> None:
    """Copies constants that regions use from outside into them; raises PassFailure if they use other values."""
    for region in op.regions:
        ops = list(_ops_of(region))
        inside = {value for block in region.blocks for value in block.arguments}
        for one in ops:
            inside.update(one.results)
            inside.update(value for of in one.regions for block in of.blocks for value in block.arguments)
        copies: dict[Any, Any] = {}
        for one in ops:
            for index, value in enumerate(one.operands):
                if value not in inside:
                    copies[value] = copies.get(value) or _copied_constant(op, value, region)
                    one.operands[index] = copies[value]


def _ops_of(region: Any) -> Iterator[Any]:
    for block in region.blocks:
        for one in block.operations:
            yield one.operation
            yield from ops_below(one.operation)


def _copied_constant(op: Any, value: Any, region: Any) -> Any:
    owner = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if owner is None or owner.name not in CONSTANT_OPS:
        raise _failure(op, f"its regions use a non-constant value of type {value.type} from above")
    with ir.InsertionPoint.at_block_begin(region.blocks[0]):
        copied = owner.clone().operation
    if sdy.SHARDING in copied.attributes:
        del copied.attributes[sdy.SHARDING]
    return copied.results[0]


def _local_module(
    op: Any,
    operands: Sequence[TensorSharding],
    results: Sequence[TensorSharding],
    around: Surroundings,
    gathers: Gathers,
    *,
    by_exchange: bool,
) -> Any:
    """Returns a module with a local function that computes the op."""
    with op.location:
        module = ir.Module.create()
        types = [value.type for value in op.operands]
        with ir.InsertionPoint(module.body):
            for one in sdy.enclosing_module(op).regions[0].blocks[0].operations:
                if one.operation.name == "sdy.mesh":
                    one.operation.clone()
            type_ = ir.FunctionType.get(types, [result.type for result in op.results])
            attributes = {"sym_name": ir.StringAttr.get("op"), "function_type": ir.TypeAttr.get(type_)}
            function = ir.Operation.create("func.func", attributes=attributes, regions=1)
        block = function.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
        for argument, sharding in zip(block.arguments, operands, strict=True):
            sdy.set_sharding(argument, sharding)
        for index, sharding in enumerate(results):
            sdy.set_result_sharding(function, index, sharding)
        with ir.InsertionPoint(block):
            ir.Operation.create("func.return", [], list(_copy(op, block.arguments).results))
    CompatibleOps(function, sdy.meshes(module.operation), is_full=True, gathers=gathers).make()
    resolve_permutation_factors(module.operation, around, by_exchange=by_exchange)
    meshes = sdy.meshes(module.operation)
    plans = CollectivePlans(meshes, module.context, keeps_redundant=False)
    reshards_to_collectives(operations_named(function, "sdy.reshard"), plans, gathers)
    pad_function(function, meshes, pads_signature=True)
    convert_global_to_local(module.operation, around.program, gathers)
    return module


def _copy(op: Any, operands: Sequence[Any]) -> Any:
    if op.name == "sdy.constant":
        attributes = {name: op.attributes[name] for name in op.attributes}
        return ir.Operation.create("stablehlo.constant", [op.results[0].type], [], attributes)
    copied = op.clone().operation
    for index, value in enumerate(operands):
        copied.operands[index] = value
    return copied


def _padded(op: Any, value: Any, sharding: TensorSharding, sizes: PaddedValues) -> Any:
    """Returns an operand, padded with zeros if its shards are uneven."""
    shape = sizes.even_shape(value.type.shape, sharding) if isinstance(value.type, ir.RankedTensorType) else ()
    if not shape or list(shape) == list(value.type.shape):
        return value
    element = value.type.element_type
    if not stablehlo.has_zero(element):
        raise _failure(op, f"{value.type} has uneven shards and cannot be padded, as its element type has no zero")
    return stablehlo.pad_behind(value, stablehlo.scalar(0, element), shape, sharding)


def _return_uncut(last: Any, index: int, sharding: TensorSharding) -> None:
    """Removes the slice of a returned value if it only cuts unsharded dimensions, which the caller then cuts."""
    cut = defining_op(last.operands[index], "stablehlo.slice")
    if cut is None or not has_one_use(cut.results[0]):
        return
    value = cut.operands[0]
    sizes = zip(sharding.dim_shardings, value.type.shape, cut.results[0].type.shape, strict=True)
    if any(elements(cut.attributes["start_indices"])) or any(of.axes and size != new for of, size, new in sizes):
        return
    last.operands[index] = value
    cut.erase()


def _global_type(type_: Any, sharding: TensorSharding, part: ManualPart) -> Any:
    if not isinstance(type_, ir.RankedTensorType):
        return type_
    return stablehlo.with_shape(type_, [size * part.shards(sharding, dim) for dim, size in enumerate(type_.shape)])


def _cloned(function: Any, arguments: Sequence[Any]) -> list[Any]:
    """Copies the ops of a local function of one block to the current insertion point; returns the results."""
    block = function.regions[0].blocks[0]
    values = dict(zip(block.arguments, arguments, strict=True))
    *ops, last = (op.operation for op in block.operations)
    for op in ops:
        copied = op.clone().operation
        for index, value in enumerate(op.operands):
            copied.operands[index] = values[value]
        for one in (copied, *ops_below(copied)):
            # The computation is on local tensors, and all axes are manual in it.
            for name in (sdy.SHARDING, sdy.SHARDING_RULE, "in_shardings", "out_shardings"):
                if name in one.attributes:
                    del one.attributes[name]
        values |= dict(zip(op.results, copied.results, strict=True))
    return [values[value] for value in last.operands]


def _check_static(op: Any, type_: Any, sharding: TensorSharding, mesh: Mesh) -> None:
    """Raises PassFailure if a dynamic dimension is sharded."""
    for dim, of in enumerate(sharding.dim_shardings):
        if of.sharded_size(mesh) > 1 and type_.is_dynamic_dim(dim):
            raise _failure(op, f"dimension {dim} of {type_} is both sharded and dynamic")


def _sharding(value: Any, ref: str | Mesh) -> TensorSharding:
    return sharding_of(value) or TensorSharding.fully_closed(rank_of(value.type), ref)


def _failure(op: Any, why: str) -> PassFailure:
    return PassFailure(f"'{op.name}' op cannot be partitioned individually: {why}", op)


# Collectives and annotations are left to later passes.
LEFT_GLOBAL = {*RESHARDING_OPS, "sdy.manual_computation", "sdy.sharding_group"} - {"sdy.reshard"}
SHARDING_CALLS = ("Sharding", "mhlo.sharding")


@register
class PerInstructionPartitioning(Pass):
    """Replaces selected ops by manual computations of their local programs.

    This helps to find the op that a partitioner handles incorrectly. Ops of function bodies that have a sharded tensor
    are numbered from 0, and selected by `filter`: all if it is empty; otherwise those whose name contains one of the
    given texts, numbered between `selectLow` and `selectHigh`, both included. The body of a manual computation is the
    op after the full `sdy-insert-explicit-reshards`, `sdy-resolve-permutation-factors`, `sdy-reshard-to-collectives`,
    `sdy-pad-for-divisibility` and `sdy-convert-global-to-local`; operands in uneven shards are padded outside it, and
    results are sliced there. An op that cannot be made local is an error.
    """

    name = "sdy-per-instruction-partitioning"
    anchor = "builtin.module"
    summary = "Partitions selected operations individually, in manual computations"

    filter: str = option("", "the operations to select: parts of names, selectLow=N, selectHigh=N, separated by commas")
    enable_halo_exchange: bool = option(True, "exchange halos between neighbouring devices where possible")
    replica_count: int = option(1, "the number of replicas; if greater than 1, replica_id identifies a device")
    partition_count: int = option(1, "the number of partitions")
    remarks_above: int | None = remarks_above()

    def run(self, op: Any) -> None:
        by_replica = is_by_replica(op, self.replica_count, self.partition_count)
        try:
            selection = Selection.parse(self.filter)
        except ValueError as error:
            raise PassFailure(str(error), op) from error
        check_sizes(op)
        around = Surroundings(listed_meshes(op), StablehloProgram(Channels.of(op), by_replica))
        gathers = Gathers(self.remarks_above)
        chosen = [one for number, one in enumerate(_candidates(op)) if selection.selects(number, one.name)]
        for one in chosen:
            partition_alone(one, around, gathers, by_exchange=self.enable_halo_exchange)
        gathers.remark()


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected ops: numbered from `low` to `high`, with one of `names` in their name if there are any."""

    names: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None

    @staticmethod
    def parse(text: str) -> Selection:
        """Reads a filter, which may be in quotes; raises ValueError if a bound is not a number."""
        text = text.strip()
        if len(text) > 1 and text[0] == text[-1] and text[0] in ("'", '"'):
            text = text[1:-1]
        names = []
        bounds: dict[str, int] = {}
        for token in filter(None, map(str.strip, text.split(","))):
            key, is_bound, value = token.partition("=")
            if not is_bound:
                names.append(token)
            elif key.strip() in ("selectLow", "selectHigh") and value.strip().isdecimal():
                bounds[key.strip()] = int(value)
            else:
                raise ValueError(
                    f"invalid token '{token}' in filter: expected parts of names, selectLow=N or selectHigh=N"
                )
        return Selection(tuple(names), bounds.get("selectLow"), bounds.get("selectHigh"))

    def selects(self, number: int, name: str) -> bool:
        """Returns whether the op of this number and name is selected."""
        is_low, is_high = self.low is not None and number < self.low, self.high is not None and number > self.high
        return not (is_low or is_high) and (not self.names or any(one in name for one in self.names))


def _candidates(module: Any) -> list[Any]:
    """Returns the ops in the bodies of functions, but not inside other ops, that have a sharded tensor."""
    found = []
    for function in operations_named(module, "func.func"):
        for block in function.regions[0].blocks:
            # The last op is the terminator.
            found += [one.operation for one in list(block.operations)[:-1] if _is_candidate(one.operation)]
    return found


def _is_candidate(op: Any) -> bool:
    if op.name in LEFT_GLOBAL or (op.name == "stablehlo.custom_call" and stablehlo.call_target(op) in SHARDING_CALLS):
        return False
    shardings = (sharding_of(value) for value in (*op.operands, *op.results))
    return any(sharding is not None and not sharding.is_fully_replicated for sharding in shardings)
