# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Removes the sharding of a program, to compute reference results for the sharded program.

A manual computation is replaced by its body on the shards of all devices, whose results are joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.host import ir
from mlir_shard.ir import stablehlo
from mlir_shard.ir.editing import (
    functions,
    inline_region,
    is_private,
    operations_named,
    operations_named_in_post_order,
    ops_in,
    replace_with,
)
from mlir_shard.ir.op_names import op_names
from mlir_shard.passes import diagnostic
from mlir_shard.runtime.collectives.point_to_point import error
from mlir_shard.runtime.collectives.stablehlo_devices import Processes
from mlir_shard.runtime.error import RunError
from mlir_shard.runtime.reference.lockstep import MANUAL, BodiesInStep, Known, Values
from mlir_shard.sharding import Mesh, TensorSharding
from mlir_shard.sharding.layout import Box, device_at, device_box, device_coordinates

# The program must stay small enough to be compiled.
_MOST_BLOCKS = 64
# Operations whose results on a device are not determined by the program.
_OF_DEVICES = frozenset(op_names("stablehlo", "custom_call infeed outfeed recv rng send"))


def refused_computations(module: Any) -> list[diagnostic.Diagnostic]:
    """Returns the reasons why manual computations of a module cannot run on one device; empty if all can."""
    found: list[diagnostic.Diagnostic] = []
    for op in _manual_computations(module):
        message = _not_in_blocks(op)
        if message:
            found.append(diagnostic.at("error", message, op.location))
        for inner in _reached(op, module):
            if inner.name in _OF_DEVICES or inner.name.startswith(("mpi.", "shard.")):
                message = f"'{inner.name}' in a manual computation cannot run on one device"
                found.append(diagnostic.at("error", message, inner.location))
    return found


def compute_on_one_device(module: Any) -> None:
    """Replaces each manual computation by its body on all shards; `refused_computations` must be empty.

    Raises RunError at a collective in a manual computation that one device cannot compute.
    """
    outermost = [op for op in _manual_computations(module) if not _is_in_another(op)]
    # Manual computations in others, or in functions that others call, are replaced with them.
    called = {inner for op in outermost for inner in _reached(op, module) if inner.name == MANUAL and inner != op}
    for op in outermost:
        if op not in called:
            _Computation(op).replace()
    _drop_unused_functions(module)
    for op in _manual_computations(module):
        if not _is_in_another(op):
            _Computation(op).replace()


def _is_in_another(op: Any) -> bool:
    around = op.parent
    while around is not None and around.operation.name != MANUAL:
        around = around.operation.parent
    return around is not None


def _drop_unused_functions(module: Any) -> None:
    """Erases private functions that are no longer called, whose collectives are outside manual computations."""
    while True:
        called = {op.attributes["callee"].value for op in operations_named(module, "func.call")}
        composites = operations_named(module, "stablehlo.composite")
        called.update(op.attributes["decomposition"].value for op in composites)
        unused = [op for name, op in functions(module).items() if is_private(op) and name not in called]
        for op in unused:
            op.erase()
        if not unused:
            return


def _manual_computations(module: Any) -> list[Any]:
    return operations_named_in_post_order(module, MANUAL)


def _reached(op: Any, module: Any) -> Iterator[Any]:
    """Yields the operations in a computation and in the functions that it calls."""
    defined = functions(module)
    left, seen = [op], set()
    while left:
        for one in ops_in(left.pop()):
            callee = one.attributes["callee"].value if one.name == "func.call" else None
            if callee in defined and callee not in seen:
                seen.add(callee)
                left.append(defined[callee])
            yield one


def _not_in_blocks(op: Any) -> str:
    """Returns the reason why a computation cannot be done on shards; an empty string if it can."""
    mesh = _mesh(op)
    if mesh is None:
        return f"'{op.name}' cannot run on one device: its shardings have no common mesh"
    for value, sharding in (
        *zip(op.operands, _shardings(op, "in_shardings"), strict=True),
        *zip(op.results, _shardings(op, "out_shardings"), strict=True),
    ):
        if not isinstance(value.type, ir.RankedTensorType) or not value.type.has_static_shape:
            return f"'{op.name}' cannot run on one device: {value.type} has shards of unknown sizes"
        if sharding.unreduced_axes:
            return f"'{op.name}' cannot run on one device: {sharding} is unreduced"
        dims = zip(value.type.shape, sharding.dim_shardings, strict=True)
        if any(size % dim.sharded_size(mesh) for size, dim in dims):
            return f"'{op.name}' cannot run on one device: {value.type} sharded as {sharding} has uneven shards"
    blocks = len({tuple(ins) for _, ins, _ in _boxes(op, mesh, [0] * len(mesh.axes))})
    return f"'{op.name}' has too many shards to run on one device: {blocks}" if blocks > _MOST_BLOCKS else ""


def _shardings(op: Any, name: str) -> list[TensorSharding]:
    """Returns shardings restricted to the manual axes: other axes do not partition the tensors of the body."""
    manual = op.attributes["manual_axes"].value.value
    return [sharding.only_axes(manual) for sharding in op.attributes[name].value.shardings]


def _mesh(op: Any) -> Mesh | None:
    """Returns the common mesh of all shardings, or an empty mesh without shardings; None if meshes differ."""
    shardings = _shardings(op, "in_shardings") + _shardings(op, "out_shardings")
    meshes = [sdy.mesh_of(sharding, op) for sharding in shardings]
    if not meshes:
        return Mesh(())
    return meshes[0] if all(mesh == meshes[0] for mesh in meshes) else None


def _boxes(op: Any, mesh: Mesh, outer: Sequence[int]) -> Iterator[tuple[int, list[Box], list[Box]]]:
    """Yields each device at positions along the manual axes, with its boxes of the operands and the results.

    outer: the coordinates along the other axes.
    """
    manual = op.attributes["manual_axes"].value.value
    along = [range(axis.size) if axis.name in manual else [place] for axis, place in zip(mesh.axes, outer, strict=True)]
    ins, outs = _shardings(op, "in_shardings"), _shardings(op, "out_shardings")
    for coordinates in product(*along):
        device = device_at(mesh, coordinates)
        yield (
            device,
            [device_box(one, mesh, value.type.shape, device) for one, value in zip(ins, op.operands, strict=True)],
            [device_box(one, mesh, value.type.shape, device) for one, value in zip(outs, op.results, strict=True)],
        )


def _mesh_of_all(op: Any, module: Any) -> Mesh:
    """Returns the mesh of a computation and of the computations in it; raises RunError if they differ."""
    found = Mesh(())
    for inner in _reached(op, module):
        mesh = _mesh(inner) if inner.name == MANUAL else None
        if mesh is None or mesh == Mesh(()):
            continue
        if found not in (Mesh(()), mesh):
            raise error(f"'{inner.name}' cannot run on one device: it is on {mesh} within one on {found}", inner)
        found = mesh
    return found


class _Computation:
    """An outermost manual computation."""

    def __init__(self, op: Any) -> None:
        module = sdy.enclosing_module(op)
        mesh = _mesh_of_all(op, module)
        self._op, self._mesh = op, mesh
        processes = Processes.among(mesh.total_size, module)
        self._bodies = BodiesInStep(functions(module), processes, self._results)

    def replace(self) -> None:
        """Replaces the computation by its results, which are computed before it."""
        op = self._op
        first = device_at(self._mesh, [0] * len(self._mesh.axes))
        with ir.InsertionPoint(op), op.location:
            (values,) = self._results(op, [first], [list(op.operands)], [{}])
        replace_with(op, values)

    def _results(self, op: Any, devices: Sequence[int], operands: Values, known: Sequence[Known]) -> Values:
        """Returns the results of this computation or one in it, on each device of the enclosing computation."""
        inner: list[int] = []
        arguments: Values = []
        around: list[Known] = []
        places: list[tuple[int, list[Box]]] = []
        mesh = self._mesh
        blocks: dict[tuple[Any, Box], Any] = {}
        for number, device in enumerate(devices):
            for place, ins, outs in _boxes(op, mesh, device_coordinates(mesh, device)):
                inner.append(place)
                arguments.append([_block(value, box, blocks) for value, box in zip(operands[number], ins, strict=True)])
                around.append(known[number])
                places.append((number, outs))
        computed = self._bodies.results(op.regions[0].blocks[0], inner, arguments, around)
        parts: list[list[dict[Box, Any]]] = [[{} for _ in op.results] for _ in devices]
        for (number, outs), values in zip(places, computed, strict=True):
            for of_result, box, value in zip(parts[number], outs, values, strict=True):
                of_result.setdefault(box, value)
        return [[_joined(of_result, 0) for of_result in of_device] for of_device in parts]


def _block(value: Any, box: Box, made: dict[tuple[Any, Box], Any]) -> Any:
    """Returns a shard of a tensor; all devices with the same box share it."""
    if box.size == tuple(value.type.shape):
        return value
    if (value, box) not in made:
        made[value, box] = stablehlo.slice_(value, box.start, box.stop)
    return made[value, box]


def _joined(parts: Mapping[Box, Any], dim: int) -> Any:
    """Returns the tensor of these shards, which have the same offsets in the dimensions before `dim`."""
    first = next(iter(parts))
    if dim == len(first.start):
        return parts[first]
    slabs: dict[int, dict[Box, Any]] = {}
    for box, value in parts.items():
        slabs.setdefault(box.start[dim], {})[box] = value
    values = [_joined(slabs[start], dim + 1) for start in sorted(slabs)]
    return values[0] if len(values) == 1 else stablehlo.concatenate(values, dim)


# Operations without a meaning without shardings.
_ERASED = frozenset({"sdy.mesh", "sdy.sharding_group", "shard.grid", "shard.sharding"})
# Operations that change only the sharding of a tensor.
_IDENTITIES = frozenset(
    op_names(
        "sdy",
        "all_gather all_reduce all_slice all_to_all collective_permute data_flow_edge propagation_barrier "
        "reduce_scatter replicated_to_unreduced reshard sharded_to_unreduced sharding_constraint",
    )
) | {"shard.shard"}
_INLINED = "sdy.named_computation"
_CONSTANT = "sdy.constant"


def drop_sharding(module: Any) -> None:
    """Removes every sharding annotation from a global module, in place.

    A `sdy.manual_computation` becomes its body on the shards of all devices. Raises RunError for an operation that one
    device cannot compute, such as a collective among other devices in such a body.
    """
    refusals = refused_computations(module)
    if refusals:
        raise _refused(refusals)
    try:
        compute_on_one_device(module)
    except RunError as error:
        raise _refused(error.diagnostics) from error
    found = []
    for op in ops_in(module):
        _drop_attributes(op)
        if op.name.startswith(("sdy.", "shard.")):
            found.append(op)
    wrong = [op for op in found if not _is_droppable(op)]
    if wrong:
        raise _refused([_without_meaning(op) for op in wrong])
    # Operations in regions come before their parents, and users before their operands.
    for op in reversed(found):
        if op.name != "sdy.return":
            _drop(op)


def _refused(diagnostics: Sequence[diagnostic.Diagnostic]) -> RunError:
    message = "the unsharded program cannot be run for comparison; --no-verify disables the comparison"
    return RunError(message, diagnostics)


def _is_droppable(op: Any) -> bool:
    if op.name == "sdy.return":
        # It is erased with its parent.
        return op.parent.name.startswith("sdy.")
    return op.name in _ERASED | _IDENTITIES | {_INLINED, _CONSTANT}


def _without_meaning(op: Any) -> diagnostic.Diagnostic:
    return diagnostic.at("error", f"'{op.name}' cannot run on one device", op.location)


def _drop(op: Any) -> None:
    if op.name in _IDENTITIES:
        replace_with(op, [op.operands[0]])
    elif op.name == _CONSTANT:
        with ir.InsertionPoint(op), op.location:
            value = op.attributes["value"]
            constant = ir.Operation.create("stablehlo.constant", [value.type], attributes={"value": value})
        replace_with(op, constant.results)
    elif op.name == _INLINED:
        replace_with(op, inline_region(op.regions[0], op.operands, op))
    else:
        op.erase()


def _drop_attributes(op: Any) -> None:
    for name in [name for name in op.attributes if name.startswith("sdy.")]:
        del op.attributes[name]
    for name in ("arg_attrs", "res_attrs"):
        if name in op.attributes:
            op.attributes[name] = ir.ArrayAttr.get([_without_sharding(one) for one in op.attributes[name]], op.context)


def _without_sharding(attributes: Any) -> Any:
    kept = {named.name: named.attr for named in attributes if not named.name.startswith("sdy.")}
    return ir.DictAttr.get(kept, attributes.context)
