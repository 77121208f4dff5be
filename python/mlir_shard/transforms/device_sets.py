# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The devices that have each value, in a program whose meshes are of different devices.

A value that is sharded on a mesh is on the devices of that mesh. The local program runs on the devices of all meshes:
devices outside the mesh have a local tensor of the same shape, whose elements no result depends on. Other values, such
as constants, are on all devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from mlir_shard.dialects import sdy
from mlir_shard.dialects.attribute import SdyAttribute
from mlir_shard.dialects.data_flow import sharding_before_barriers
from mlir_shard.dialects.data_flow_edges import edges_of, has_edges
from mlir_shard.passes.analyses import analysis
from mlir_shard.passes.registry import PassFailure
from mlir_shard.sharding import AxisRef, Mesh, TensorSharding
from mlir_shard.transforms.device_strides import cuts_by
from mlir_shard.transforms.shardings import Side, listed_meshes, shardings_in, shardings_of

SOURCE = "mlir_shard.source"
"""The sharding of the operand of an `sdy.reshard` between meshes of different devices, which is a direct exchange."""

MOVING = ("sdy.propagation_barrier", "sdy.reshard", "sdy.sharding_constraint")
"""The ops that may bring a value from one mesh to another."""
_MANUAL = "sdy.manual_computation"
_CONDITIONS = {"stablehlo.while": 0, "scf.while": 0}
_CHOOSING = frozenset(("stablehlo.case", "stablehlo.if", "scf.if", "scf.index_switch"))


def is_crossing(op: Any) -> bool:
    """Returns whether an op is an exchange between meshes of different devices."""
    return op.name == "sdy.reshard" and SOURCE in op.attributes


def source_of(op: Any) -> TensorSharding:
    """Returns the sharding of the operand of an exchange, on the devices of `SOURCE`, as passes have left it."""
    told: TensorSharding = op.attributes[SOURCE].value
    now = sharding_before_barriers(op.operands[0])
    mesh, other = (None if one is None else sdy.mesh_of(one, op) for one in (told, now))
    if now is not None and mesh is not None and other is not None and other.axes and other.has_same_devices(mesh):
        return now
    return TensorSharding.fully_closed(len(told.dim_shardings), told.mesh_or_ref)


def count_devices(meshes: Iterable[Mesh]) -> int:
    """Returns the number of devices of a program: the largest number in a mesh with axes plus one, at least one."""
    return max((_last_device(mesh) + 1 for mesh in meshes if mesh.axes), default=1)


def have_different_devices(meshes: Iterable[Mesh]) -> bool:
    """Returns whether the meshes that have axes are not all of the same devices."""
    with_axes = [mesh for mesh in meshes if mesh.axes]
    return any(not mesh.has_same_devices(with_axes[0]) for mesh in with_axes)


def _last_device(mesh: Mesh) -> int:
    return max(mesh.device_ids) if mesh.device_ids else mesh.total_size - 1


def separate_meshes(meshes: Iterable[Mesh], axes: Mapping[Mesh, Iterable[AxisRef]]) -> tuple[list[int], list[Mesh]]:
    """Returns the cuts of a grid of the devices of all meshes for the axes of each, and the meshes that do not fit.

    Meshes are added to the grid from the largest one down, each of them if the grid can have it with those before.
    """
    meshes = sorted(meshes, key=lambda mesh: -mesh.total_size)
    devices = count_devices(meshes)
    cuts = [1, devices] if devices > 1 else [1]
    separate = []
    for mesh in meshes:
        own = cuts_by(mesh, axes[mesh], devices)
        both = sorted({*cuts, *(own or ())})
        if own is None or any(larger % smaller for smaller, larger in pairwise(both)):
            separate.append(mesh)
        else:
            cuts = both
    return cuts, separate


class DeviceSets:
    """The sets of devices of the meshes of a module, each represented by the first mesh of these devices."""

    def __init__(self, module: Any) -> None:
        self._meshes = listed_meshes(module)
        known = [(name, mesh) for name, mesh in self._meshes.items() if mesh.axes]
        inlined = [one.mesh_or_ref for one in analysis(shardings_in, module) if isinstance(one.mesh_or_ref, Mesh)]
        self.refs: list[tuple[str | Mesh, Mesh]] = [*known, *((mesh, mesh) for mesh in inlined if mesh.axes)]
        self._found: dict[str | Mesh, str | Mesh | None] = {}

    @property
    def are_several(self) -> bool:
        """Whether there is more than one set."""
        return have_different_devices(mesh for _, mesh in self.refs)

    def of(self, sharding: TensorSharding | None) -> str | Mesh | None:
        """Returns the set that a sharding is on, as the reference to its first mesh; None if its mesh is not known."""
        if sharding is None:
            return None
        ref = sharding.mesh_or_ref
        if ref not in self._found:
            mesh = ref if isinstance(ref, Mesh) else self._meshes.get(ref)
            same = (one for one, other in self.refs if mesh is not None and mesh.axes and other.has_same_devices(mesh))
            self._found[ref] = next(same, None)
        return self._found[ref]

    def mesh(self, ref: str | Mesh) -> Mesh:
        """Returns the mesh of a reference."""
        return ref if isinstance(ref, Mesh) else self._meshes[ref]

    def is_separate(self, mesh: Mesh) -> bool:
        """Returns whether a mesh is not part of a grid of all devices."""
        meshes = list(dict.fromkeys(known for _, known in self.refs))
        return mesh in separate_meshes(meshes, {one: [AxisRef(name) for name in one.axis_names] for one in meshes})[1]

    def described(self, ref: str | Mesh) -> str:
        """Returns the description of a mesh for messages."""
        mesh = self.mesh(ref)
        name = f"mesh {mesh}" if isinstance(ref, Mesh) else f"mesh @{ref}"
        return f"{name} ({mesh.total_size} devices)"


Ref = str | Mesh


class Homes:
    """The devices that have each value of a function, as references of `DeviceSets`; None for all devices.

    Raises PassFailure if the operands of an op that is not in `MOVING` are on different devices, or if devices that do
    not have a value need it to decide how often a loop or which region is run.
    """

    def __init__(self, function: Any, sets: DeviceSets) -> None:
        self._sets = sets
        self._known: dict[Any, Ref] = {}
        block = function.regions[0].blocks[0]
        for argument, sharding in zip(block.arguments, shardings_of(function, Side.ARGUMENTS), strict=True):
            self._put(argument, sets.of(sharding))
        self._block(block)

    def of(self, value: Any) -> Ref | None:
        """Returns the devices that have a value; None for all."""
        return self._known.get(value)

    def _put(self, value: Any, home: Ref | None) -> bool:
        """Records the devices of a value; returns whether they changed."""
        if home is None or self._known.get(value) == home:
            return False
        self._known[value] = home
        return True

    def _block(self, block: Any) -> bool:
        is_changed = False
        for op in block.operations:
            is_changed |= self._op(op.operation)
        return is_changed

    def _op(self, op: Any) -> bool:
        if op.name in MOVING:
            home = self._sets.of(_sharding_after(op))
            return self._put(op.results[0], home or self.of(op.operands[0]))
        if op.name == _MANUAL:
            return self._manual(op)
        if op.name == "func.return":
            return False
        if has_edges(op.name) and len(op.regions):
            return self._with_edges(op)
        home = self._joined(op, op.operands)
        for block in _blocks(op):
            for argument in block.arguments:
                self._put(argument, home)
            self._block(block)
            home = self._joined(op, [value for inner in block.operations for value in inner.operation.operands], home)
        return self._results(op, home)

    def _results(self, op: Any, home: Ref | None) -> bool:
        is_changed = False
        for result in op.results:
            declared = self._sets.of(sdy.get_sharding(result))
            if home is not None and declared is not None and declared != home:
                raise self._mixed(op, "its operands are", home, "its result is", declared)
            is_changed |= self._put(result, home or declared)
        return is_changed

    def _joined(self, op: Any, values: Iterable[Any], home: Ref | None = None) -> Ref | None:
        for value in values:
            own = self.of(value)
            if home is not None and own is not None and own != home:
                raise self._mixed(op, "one operand is", home, "another one is", own)
            home = home or own
        return home

    def _manual(self, op: Any) -> bool:
        for value, sharding in zip(op.operands, op.attributes["in_shardings"].value.shardings, strict=True):
            home, own = self._sets.of(sharding), self.of(value)
            if home is not None and own is not None and home != own:
                raise self._mixed(op, "an operand is", own, "its in_sharding is", home)
        shardings = op.attributes["out_shardings"].value.shardings
        found = [self._put(result, self._sets.of(one)) for result, one in zip(op.results, shardings, strict=True)]
        return any(found)

    def _with_edges(self, op: Any) -> bool:
        """Processes a loop until the devices of its values no longer change, once each at most; returns if any did."""
        ever_changed = False
        is_changed = True
        while is_changed:
            is_changed = False
            for edge in edges_of(op):
                targets = (edge.owner, *edge.other_targets)
                home = self._joined(op, (*edge.sources, *targets))
                for target in targets:
                    is_changed |= self._put(target, home)
            for block in _blocks(op):
                is_changed |= self._block(block)
            ever_changed |= is_changed
        self._check_condition(op)
        return ever_changed

    def _check_condition(self, op: Any) -> None:
        deciding: Sequence[Any] = ()
        if op.name in _CONDITIONS:
            operations = op.regions[_CONDITIONS[op.name]].blocks[0].operations
            deciding = operations[len(operations) - 1].operation.operands[:1]
        elif op.name in _CHOOSING:
            deciding = op.operands[:1]
        for value in deciding:
            if (home := self.of(value)) is not None and self._is_partial(home):
                what = "its number of iterations" if op.name in _CONDITIONS else "its choice of region"
                raise PassFailure(
                    f"'{op.name}' cannot be partitioned: {what} depends on a value on {self._sets.described(home)}, "
                    "which is not available on the other devices of the program",
                    op,
                )

    def _is_partial(self, home: Ref) -> bool:
        mesh = self._sets.mesh(home)
        return mesh.total_size < count_devices(other for _, other in self._sets.refs)

    def _mixed(self, op: Any, first: str, home: Ref, second: str, other: Ref) -> PassFailure:
        return PassFailure(
            f"'{op.name}' cannot be partitioned: {first} on {self._sets.described(home)}, but {second} on "
            f"{self._sets.described(other)} with different devices: reshard one to the mesh of the other with an "
            "'sdy.sharding_constraint'",
            op,
        )


def _blocks(op: Any) -> Iterator[Any]:
    for region in op.regions:
        yield from region.blocks


def _sharding_after(op: Any) -> TensorSharding | None:
    if "sharding" in op.attributes and isinstance(op.attributes["sharding"], SdyAttribute):
        sharding: TensorSharding = op.attributes["sharding"].value
        return sharding
    return sdy.get_sharding(op.results[0])
