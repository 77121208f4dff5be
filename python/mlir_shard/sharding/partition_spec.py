# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partition specs: shardings in the notation of JAX, independent of the rank of a tensor and of a mesh."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, Literal

from mlir_shard.sharding.axes import AxisRef
from mlir_shard.sharding.mesh import Mesh
from mlir_shard.sharding.tensor import DimensionSharding, TensorSharding
from mlir_shard.sharding.verify.tensor import check_tensor_sharding

_SUB_AXIS = re.compile(r"(.+):\((\d+)\)(\d+)")


class Unconstrained(Enum):
    """The entry of a dimension whose sharding propagation chooses."""

    UNCONSTRAINED = "UNCONSTRAINED"

    def __repr__(self) -> str:
        return "P.UNCONSTRAINED"


Entry = str | Sequence[str] | Unconstrained | None


class PartitionSpec:
    """The sharding of each dimension of a tensor, like `jax.sharding.PartitionSpec`.

    An entry is the name of a mesh axis, a tuple of names from major to minor, None for a dimension that is replicated,
    or `P.UNCONSTRAINED` for one that propagation may shard. Dimensions without an entry are replicated. A name may be a
    sub-axis: `"x:(2)4"` is the part of size 4 of axis `"x"` that follows a major part of size 2.

    Args:
        entries: one for each dimension, from the first.
        unreduced: axes along which devices hold partial sums.
    """

    UNCONSTRAINED: Literal[Unconstrained.UNCONSTRAINED] = Unconstrained.UNCONSTRAINED

    __slots__ = ("_entries", "_unreduced")

    def __init__(self, *entries: Entry, unreduced: Iterable[str] = ()) -> None:
        self._entries = tuple(map(_entry, entries))
        self._unreduced = frozenset(unreduced)

    @property
    def unreduced(self) -> frozenset[str]:
        """The axes along which devices hold partial sums."""
        return self._unreduced

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: int) -> Entry:
        return self._entries[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartitionSpec):
            return NotImplemented
        return (self._entries, self._unreduced) == (other._entries, other._unreduced)

    def __hash__(self) -> int:
        return hash((self._entries, self._unreduced))

    def __repr__(self) -> str:
        parts = [*map(repr, self._entries)]
        parts += [f"unreduced={set(self._unreduced)}"] if self._unreduced else []
        return f"P({', '.join(parts)})"


def _entry(entry: Any) -> Entry:
    if entry is None or isinstance(entry, (str, Unconstrained)):
        return entry
    if isinstance(entry, (tuple, list)) and all(isinstance(name, str) for name in entry):
        return tuple(entry)
    if type(entry).__name__ == "UnconstrainedSingleton":
        return PartitionSpec.UNCONSTRAINED
    raise TypeError(
        f"{entry!r} is not an entry of a partition spec: expected the name of a mesh axis, a tuple of names, None, "
        "or P.UNCONSTRAINED"
    )


def as_partition_spec(given: Any) -> PartitionSpec:
    """Converts a spec of JAX to a `PartitionSpec`, and returns one unchanged. Raises TypeError for other values."""
    if isinstance(given, PartitionSpec):
        return given
    type_ = type(given)
    if type_.__name__ in ("P", "PartitionSpec") and type_.__module__.partition(".")[0] == "jax":
        return PartitionSpec(*given, unreduced=getattr(given, "unreduced", ()))
    raise TypeError(f"{given!r} is not a partition spec: expected for example P('data', None)")


def sharding_of_spec(spec: Any, shape: Sequence[int | None], mesh: Mesh, mesh_or_ref: str | Mesh) -> TensorSharding:
    """Returns the sharding that a spec describes for a tensor.

    Args:
        spec: a `PartitionSpec` or a partition spec of JAX.
        shape: the shape of the tensor, with None for a dynamic dimension.
        mesh: the mesh with the axes that the spec names.
        mesh_or_ref: the reference of the sharding to the mesh, a name or the mesh.

    Raises:
        ValueError: the spec has more entries than the tensor has dimensions, names an axis twice, or names an axis that
            the mesh does not have.
    """
    spec = as_partition_spec(spec)
    if len(spec) > len(shape):
        raise ValueError(f"{spec} has {len(spec)} entries, but the tensor has {len(shape)} dimensions")
    dims = [_dimension(entry, mesh) for entry in spec]
    dims += [DimensionSharding((), is_closed=True)] * (len(shape) - len(dims))
    unreduced = tuple(_axis(name, mesh) for name in sorted(spec.unreduced, key=_place(mesh)))
    sharding = TensorSharding(mesh_or_ref, tuple(dims), unreduced_axes=unreduced)
    if problem := check_tensor_sharding(sharding, mesh, tuple(shape)):
        raise ValueError(f"{spec}: {problem}")
    return sharding


def _place(mesh: Mesh) -> Any:
    return lambda name: mesh.axis_names.index(name) if mesh.has_axis(name) else len(mesh.axes)


def _dimension(entry: Entry, mesh: Mesh) -> DimensionSharding:
    if isinstance(entry, Unconstrained):
        return DimensionSharding((), is_closed=False)
    names = () if entry is None else (entry,) if isinstance(entry, str) else entry
    return DimensionSharding(tuple(_axis(name, mesh) for name in names), is_closed=True)


def _axis(name: str, mesh: Mesh) -> AxisRef:
    found = _SUB_AXIS.fullmatch(name)
    full = found[1] if found else name
    if not mesh.has_axis(full):
        near = difflib.get_close_matches(full, mesh.axis_names, 1)
        hint = f": did you mean '{near[0]}'?" if near else ""
        raise ValueError(f"axis '{full}' is not in the mesh {mesh}{hint}")
    if not found:
        return AxisRef(name)
    return AxisRef.sub(full, int(found[2]), int(found[3]))
