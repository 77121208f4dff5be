# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Converts sdy meshes and shardings to upstream's annotations: `shard.grid`, `shard.sharding` and `shard.shard`.

Uneven shards are given by upstream's `sharded_dims_offsets`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir import shard
from mlir_shard.ir.editing import children, ops_below
from mlir_shard.ir.values import defining_op, insertion_point_after
from mlir_shard.passes.options import option
from mlir_shard.passes.registry import ModulePass, PassFailure, register
from mlir_shard.sharding import AxisRef, TensorSharding
from mlir_shard.transforms.call_graph import name_of
from mlir_shard.transforms.device_grid import DeviceGrid, GridError
from mlir_shard.transforms.limits import check_devices
from mlir_shard.transforms.shardings import transform_shardings


def offsets_of_blocks(shape: Sequence[int], blocks: Sequence[int | None]) -> tuple[int, ...]:
    """Returns the offsets of shards of a static `shape`; `blocks` has their number per dimension, None if not split."""
    offsets: list[int] = []
    for size, count in zip(shape, blocks, strict=True):
        if count is not None:
            block = -(-size // count)
            offsets += [min(index * block, size) for index in range(count + 1)]
    return tuple(offsets)


def has_uneven_blocks(shape: Sequence[int], blocks: Sequence[int | None]) -> bool:
    """Returns whether some dimension is not divisible by its number of shards."""
    return any(count is not None and size % count for size, count in zip(shape, blocks, strict=True))


# The ops that only steer propagation; their result is equal to their operand, or they have none.
_STEERING = ("sdy.propagation_barrier", "sdy.sharding_group")


def _reshards(op: Any) -> bool:
    """Returns whether an operation's result is the same tensor as its operand except for the sharding.

    For global tensors this includes reductions: upstream reduces when it makes the operation local that leaves partial
    sums.
    """
    if op.name in ("sdy.sharding_constraint", "sdy.reshard"):
        return True
    return op.name.startswith("sdy.") and "out_sharding" in op.attributes


def annotate_function(function: Any, grids: dict[str, DeviceGrid], *, complete: bool) -> None:
    """Replaces the sdy shardings of a `func.func` by annotations.

    If `complete`, annotates every argument, and every result of an operation in the function's own blocks, values
    without a sharding as replicated, and adds an annotation for users. Otherwise annotates only values with a
    sharding, once. Raises PassFailure for shardings that annotations cannot express.
    """
    if not function.regions[0].blocks:
        _reject_shardings_of_declaration(function)
        return
    _Annotations(function, grids, complete).write()
    _strip(function)


def _reject_shardings_of_declaration(function: Any) -> None:
    for key, kind in (("arg_attrs", "argument"), ("res_attrs", "result")):
        for index, attrs in enumerate(function.attributes.get(key, ())):
            if sdy.SHARDING in attrs:
                where = f"{kind} {index} of @{name_of(function)}"
                raise PassFailure(f"{where} is sharded, but the function has no body for its annotation", function)


class _Annotations:
    """The writer of the annotations of a function; each distinct `shard.sharding` is written once, at its beginning."""

    def __init__(self, function: Any, grids: dict[str, DeviceGrid], complete: bool) -> None:
        self._function = function
        self._grids = grids
        self._complete = complete
        self._first = function.regions[0].blocks[0].operations[0].operation
        self._shardings: dict[Any, Any] = {}

    def write(self) -> None:
        ops = list(ops_below(self._function))
        for op in ops:
            _reject_unsayable(op)
        values = list(self._values(ops))
        replaced = [op for op in ops if _is_replaced(op)]
        default = self._default_grid(values, replaced)
        for op in replaced:
            self._replace(op)
        for op in ops:
            if op.name == "func.return" and op.parent == self._function:
                self._annotate_returned(op)
        for value, sharding in values:
            self._annotate(value, sharding, default)
        for op in reversed(replaced):
            op.erase()

    def _values(self, ops: list[Any]) -> Iterator[tuple[Any, TensorSharding | None]]:
        """Yields the tensors to annotate, with their shardings: arguments, then results in text order."""
        for block in self._function.regions[0].blocks:
            for argument in block.arguments:
                yield from self._candidate(argument, is_top=True)
        for op in ops:
            if len(op.results) and not _is_replaced(op):
                is_top = op.parent == self._function
                for result in op.results:
                    yield from self._candidate(result, is_top)

    def _candidate(self, value: Any, is_top: bool) -> Iterator[tuple[Any, TensorSharding | None]]:
        if isinstance(value.type, ir.RankedTensorType):
            sharding = sdy.get_sharding(value)
            if sharding is not None and self._says_nothing(sharding):
                sharding = None
            if sharding is not None or (self._complete and is_top):
                yield value, sharding

    def _says_nothing(self, sharding: TensorSharding) -> bool:
        """Returns whether the sharding is equivalent to none: open and without axes, or on a mesh without axes."""
        if sharding.unreduced_axes or not sharding.is_fully_replicated:
            return False
        return sharding.is_fully_open or sharding.mesh_or_ref not in self._grids

    def _is_known(self, value: Any, sharding: TensorSharding) -> bool:
        """Returns whether the value itself is annotated with an equivalent sharding."""
        known = None if _is_annotation(value) else sdy.get_sharding(value)
        return known is not None and not self._says_nothing(known) and sharding.is_equivalent(known)

    def _default_grid(self, values: list[tuple[Any, TensorSharding | None]], replaced: list[Any]) -> str | None:
        """Returns the grid on which values without a sharding are replicated; None if the function has no shardings."""
        returned = range(len(self._function.attributes["function_type"].value.results))
        shardings = [
            *(sharding for _, sharding in values),
            *(sdy.get_sharding(op.results[0]) for op in replaced if _reshards(op)),
            *(sdy.get_result_sharding(self._function, index) for index in returned),
        ]
        meshes = dict.fromkeys(one.mesh_or_ref for one in shardings if one is not None and not self._says_nothing(one))
        unsaid = next((value for value, sharding in values if sharding is None), None)
        names = [name for name in meshes if isinstance(name, str)]
        if len(names) > 1 and unsaid is not None:
            raise PassFailure(
                f"{_description(unsaid)} has no sharding, and the function has shardings on "
                f"{' and '.join(f'@{name}' for name in names)}: add a sharding that is replicated on one of them",
                self._blamed(unsaid),
            )
        return names[0] if names else None

    def _replace(self, op: Any) -> None:
        """Replaces the result of an op that only changes or steers a sharding by its operand, annotated if needed."""
        if not len(op.results):
            return
        operand, result = op.operands[0], op.results[0]
        sharding = None if op.name in _STEERING else sdy.get_sharding(result)
        if sharding is None or self._says_nothing(sharding) or self._is_known(operand, sharding):
            result.replace_all_uses_with(operand)
            return
        result.replace_all_uses_with(self._for_users(operand, self._written(sharding, result), op))

    def _annotate_returned(self, op: Any) -> None:
        for index, operand in enumerate(op.operands):
            sharding = sdy.get_result_sharding(self._function, index)
            if sharding is None or self._says_nothing(sharding):
                continue
            if self._is_known(operand, sharding):
                continue
            written = self._written(sharding, operand)
            if _is_annotation(operand) and operand.owner.operands[1] == written:
                continue
            op.operands[index] = self._for_users(operand, written, op)

    def _for_users(self, value: Any, written: Any, user: Any) -> Any:
        """Builds an annotation of `value` for users before `user`; annotations of arguments come before it."""
        with ir.InsertionPoint(user), user.location:
            annotation = shard.annotate(value, written, for_users=True)
        if user == self._first:
            self._first = annotation.owner.operation
        return annotation

    def _annotate(self, value: Any, sharding: TensorSharding | None, default: str | None) -> None:
        if sharding is None:
            if default is None:
                return
            sharding = TensorSharding.fully_closed(value.type.rank, default)
        written = self._written(sharding, value)
        annotations = [use.owner for use in value.uses if use.owner.operation.name == "shard.shard"]
        with self._after(value), value.location:
            definition = shard.annotate(value, written, for_users=False)
            for annotation in annotations:
                annotation.operands[0] = definition
            for_users = definition
            users = [use.owner for use in value.uses if not _is_replaced(use.owner.operation)]
            if self._complete and len(users) > 1:
                for_users = shard.annotate(definition, written, for_users=True)
        value.replace_all_uses_except(for_users, definition.owner.operation)

    def _after(self, value: Any) -> Any:
        if value.owner == self._first.block:
            return ir.InsertionPoint(self._first)
        return insertion_point_after(value)

    def _written(self, sharding: TensorSharding, value: Any) -> Any:
        """Returns the `shard.sharding` with the meaning of an sdy sharding of a value."""
        grid = self._grid_of(sharding, value)
        axes = tuple(grid.axes(dim.axes) for dim in sharding.dim_shardings)
        blocks = [grid.blocks(dim) if dim else None for dim in axes]
        shape = [value.type.shape[dim] if count else 0 for dim, count in enumerate(blocks)]
        offsets: tuple[int, ...] = ()
        if not any(size < 0 for size in shape) and has_uneven_blocks(shape, blocks):
            offsets = offsets_of_blocks(shape, blocks)
        split = axes[: max((dim + 1 for dim, used in enumerate(axes) if used), default=0)]
        key = (grid.name, split, offsets)
        if key not in self._shardings:
            with ir.InsertionPoint(self._first), self._function.location:
                self._shardings[key] = shard.sharding(grid.name, split, offsets)
        return self._shardings[key]

    def _grid_of(self, sharding: TensorSharding, value: Any) -> DeviceGrid:
        if sharding.unreduced_axes:
            axes = ", ".join(map(str, sharding.unreduced_axes))
            raise PassFailure(
                f"{_description(value)} is unreduced along {axes}, which upstream's annotations cannot express: "
                "reduce it first",
                self._blamed(value),
            )
        name = sharding.mesh_or_ref
        if not isinstance(name, str):
            raise PassFailure(
                f"{_description(value)} has the sharding {sharding} with an inlined mesh: run "
                "'sdy-lift-inlined-meshes' first",
                self._blamed(value),
            )
        return self._grids[name]

    def _blamed(self, value: Any) -> Any:
        """Returns the operation that a diagnostic about a value points at."""
        return self._function if isinstance(value.owner, ir.Block) else value.owner


def _is_replaced(op: Any) -> bool:
    return op.name in _STEERING or _reshards(op)


def _reject_unsayable(op: Any) -> None:
    if op.name.startswith("sdy.") and not _is_replaced(op):
        raise PassFailure(f"'{op.name}' has no counterpart in upstream's annotations", op)


def _is_annotation(value: Any) -> bool:
    return defining_op(value, "shard.shard") is not None


def _strip(function: Any) -> None:
    """Removes the attributes of sdy from the function and its operations."""
    for key in ("arg_attrs", "res_attrs"):
        if key in function.attributes:
            kept = [_without_sdy(attrs) for attrs in function.attributes[key]]
            if any(len(attrs) for attrs in kept):
                function.attributes[key] = ir.ArrayAttr.get(kept, function.context)
            else:
                del function.attributes[key]
    for op in ops_below(function):
        for name in [name for name in op.attributes if name.startswith("sdy.")]:
            del op.attributes[name]


def _without_sdy(attrs: Any) -> Any:
    kept = {named.name: named.attr for named in attrs if not named.name.startswith("sdy.")}
    return ir.DictAttr.get(kept, attrs.context)


def _description(value: Any) -> str:
    """Returns the description of a value for a diagnostic."""
    if isinstance(value.owner, ir.Block):
        return f"argument {ir.BlockArgument(value).arg_number}"
    index = next(index for index, result in enumerate(value.owner.results) if result == value)
    return f"result {index} of '{value.owner.operation.name}'"


@register
class ConvertSdyToShard(ModulePass):
    """Replaces each mesh by a `shard.grid` and annotates every tensor as upstream's `shard-partition` requires: each
    argument and result by a `shard.shard`, and its uses by one that annotates for users. Tensors without a sharding are
    annotated as replicated.

    If tensors are sharded on sub-axes, the grid has an axis for each part. The names of axes are kept in the attribute
    `mlir_shard.axis_names` of the grid, and shards of different sizes are described by `sharded_dims_offsets`.
    Constraints, reshards and collectives that change only the sharding become annotations for users. Attributes that
    only steer propagation are dropped: open dimensions, priorities, replicated axes, sharding rules. Unreduced axes,
    reordered devices, manual computations and all else that upstream's annotations cannot express are rejected.
    """

    name = "convert-sdy-to-shard"
    summary = "Converts sdy meshes and shardings to upstream's shard annotations"

    partial: bool = option(
        False, "annotate only values that have a sharding, and leave the others to upstream's propagation"
    )

    def run(self, op: Any) -> None:
        check_devices(op, sdy.meshes(op))
        functions = _functions(op)
        grids = _grids(op)
        for function in functions:
            annotate_function(function, grids, complete=not self.partial)
        for mesh in children(op, "sdy.mesh"):
            _replace_mesh(mesh, grids)


def _functions(module: Any) -> list[Any]:
    """Returns the functions of the module; raises PassFailure for shardings elsewhere."""
    functions = []
    for op in ops_below(module, enters=lambda op: op.name != "func.func"):
        if op.name == "func.func":
            functions.append(op)
        elif op.name == "sdy.mesh":
            if op.parent != module:
                name = op.attributes["sym_name"].value
                raise PassFailure(f"mesh @{name} is in a nested module, but only top-level meshes become grids", op)
        elif sdy.SHARDING in op.attributes or op.name.startswith("sdy."):
            raise PassFailure(
                f"'{op.name}' is sharded outside of a 'func.func', which upstream's annotations cannot express", op
            )
    return functions


def _grids(module: Any) -> dict[str, DeviceGrid]:
    """Returns the grids of the meshes that have axes, by name; axes are split only where sub-axes of them are used."""
    axes: dict[str, dict[AxisRef, None]] = {}

    def note(sharding: TensorSharding) -> TensorSharding:
        if isinstance(sharding.mesh_or_ref, str):
            axes.setdefault(sharding.mesh_or_ref, {}).update(dict.fromkeys(sharding.sharding_axes))
        return sharding

    transform_shardings(module, note)
    grids = {}
    for op in children(module, "sdy.mesh"):
        name, mesh = op.attributes["sym_name"].value, op.attributes["mesh"].value
        if mesh.is_maximal:
            raise PassFailure(
                f"mesh @{name} consists of the single device {mesh.maximal_device_id}, which a 'shard.grid' cannot "
                "express",
                op,
            )
        if mesh.axes:
            try:
                grids[name] = DeviceGrid.for_shardings(name, mesh, axes.get(name, ()))
            except GridError as error:
                raise PassFailure(str(error), op) from error
    return grids


def _replace_mesh(op: Any, grids: dict[str, DeviceGrid]) -> None:
    grid = grids.get(op.attributes["sym_name"].value)
    if grid is not None:
        with ir.InsertionPoint(op), op.location:
            new = shard.grid(grid.name, grid.shape)
            names = [ir.StringAttr.get(str(atom).replace('"', "")) for atom in grid.atoms]
            if [name.value for name in names] != [f"axis_{index}" for index in range(len(names))]:
                new.attributes[shard.AXIS_NAMES] = ir.ArrayAttr.get(names)
    op.erase()
