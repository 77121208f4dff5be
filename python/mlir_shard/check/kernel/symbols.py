# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of symbols: each element on each device is a term, and each op is applied to arrays of terms.

Two programs compute the same if their results are the same terms. A tensor is an array of the numbers of terms, with a
first dimension for devices, which is of size 1 if the tensor is uniform across devices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from typing import Any

from mlir_shard.check.kernel.indices import Entry
from mlir_shard.check.kernel.kinds import IDEMPOTENT, NotCertified
from mlir_shard.check.kernel.mesh import Mesh
from mlir_shard.check.kernel.terms import FLOATS, UNKNOWN, Terms, entries_of, number
from mlir_shard.deferred import numpy as np

MOST, FEW = 2**24, 2**21
"""The limits of the cost of one check and of its first attempt; an element costs one."""
_MOST_AT_ONCE = 2**23
# The cost of an op on distinct operands, and of each of its operands.
_PER_ROW, _PER_TERM = 48, 8


class Tensor:
    """The terms of a tensor, by device and position."""

    __slots__ = ("_key", "terms")

    def __init__(self, terms: Any) -> None:
        self.terms = terms
        self._key: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The local shape."""
        return tuple(self.terms.shape[1:])

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return int(self.terms.ndim) - 1

    def __hash__(self) -> int:
        return hash(self._identity())

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Tensor) and self._identity() == other._identity())

    def _identity(self) -> Any:
        if self._key is None:
            terms = self.terms if (self.terms != self.terms[:1]).any() else self.terms[:1]
            self._key = terms.shape, terms.tobytes()
        return self._key


class Symbols:
    """The meaning of tensors as arrays of terms; both programs of a check share the terms.

    Attributes:
        is_spent: whether there are more elements than may be computed.
    """

    is_exact = True

    def __init__(self, mesh: Mesh, most: int = MOST) -> None:
        self.mesh, self.terms = mesh, Terms()
        self._leaves: dict[Any, Any] = {}
        self._left = most
        self.is_spent = False

    def spend(self, count: int) -> None:
        """Counts elements that are computed. Raises NotCertified if there are too many."""
        self._left -= count
        if self._left < 0 or count > _MOST_AT_ONCE:
            self.is_spent = True
            raise NotCertified("too many elements to be compared one by one", "symbols")

    def leaf(self, op: tuple[Any, ...], shape: Sequence[int]) -> Tensor:
        key = op, tuple(shape)
        if key not in self._leaves:
            self.spend(_PER_TERM * prod(shape))
            entries = entries_of(op[1]) if op[0] == "table" else None
            if entries is not None and entries.shape == key[1]:
                found = [self.terms.number(one) for one in entries.ravel().tolist()]
            else:
                found = [self.terms.term("leaf", *key, at) for at in range(prod(shape))]
            self._leaves[key] = np.array(found, np.int64).reshape(1, *shape)
        return Tensor(self._leaves[key])

    def constant(self, type_: str, number_: str, shape: Sequence[int]) -> Tensor:
        of = number(number_)
        term = self.terms.term("constant", number_) if of is None else self.terms.number(of)
        return Tensor(np.full((1, *shape), term, np.int64))

    def index(self, type_: str, entry: Entry, dims: Sequence[Sequence[int]]) -> Tensor:
        shape = tuple(map(prod, dims))
        self.spend(prod(shape))
        positions = self._positions(entry, shape)
        distinct, at = np.unique(positions, return_inverse=True)
        of = float if type_ in FLOATS else int
        numbers = np.array([self.terms.number(of(one)) for one in distinct.tolist()], np.int64)
        found = numbers[at].reshape(positions.shape)
        return Tensor(np.broadcast_to(found, (len(found), *shape)))

    def _positions(self, entry: Entry, sizes: Sequence[int]) -> Any:
        """Returns an affine index at each position, for each device or once for all."""
        devices = tuple(term for term in entry[1] if term[1] < 0)
        own = self.mesh.by_device((entry[0], devices)) if devices else np.array([entry[0]])
        grid = np.ogrid[tuple(map(slice, sizes))]
        own = own.reshape(-1, *(1 for _ in sizes))
        return own + sum((stride * grid[one][None] for stride, one in entry[1] if one >= 0), np.zeros((), np.int64))

    def accessed(
        self, value: Tensor, entries: Sequence[Entry], sizes: Sequence[int], lemma: str = "", *, bounded: bool = True
    ) -> Tensor:
        index, outside = [], np.array(False)
        for dim, (entry, size) in enumerate(zip(entries, value.shape, strict=True)):
            at = self._positions(entry, sizes)
            outside_here = (at < 0) | (at >= size)
            if bounded and 0 not in sizes and outside_here.any():
                raise NotCertified(f"an index of dimension {dim} is out of bounds on some devices", lemma)
            outside = outside | outside_here
            index.append(np.clip(at, 0, max(size - 1, 0)))
        if 0 in sizes or 0 in value.shape:
            return Tensor(np.full((1, *sizes), UNKNOWN, np.int64))
        devices = max([len(value.terms), *(len(one) for one in index)])
        self.spend(devices * prod(sizes))
        own = np.arange(devices).reshape(-1, *(1 for _ in sizes)) if len(value.terms) > 1 else 0
        at_all = own, *index
        found = np.where(outside, UNKNOWN, value.terms[at_all])
        return Tensor(np.broadcast_to(found, (devices, *sizes)))

    def reshaped(self, value: Tensor, shape: Sequence[int]) -> Tensor:
        return Tensor(value.terms.reshape(len(value.terms), *shape))

    def padded(self, value: Tensor, number: Tensor, low: Sequence[int], high: Sequence[int]) -> Tensor:
        sizes = [size + one + other for size, one, other in zip(value.shape, low, high, strict=True)]
        devices = max(len(value.terms), len(number.terms))
        self.spend(devices * prod(sizes))
        around = number.terms.reshape(-1, *(1 for _ in sizes))
        found = np.broadcast_to(around, (devices, *sizes)).copy()
        into = [slice(max(one, 0), size - max(other, 0)) for one, other, size in zip(low, high, sizes, strict=True)]
        of = [
            slice(max(-one, 0), size - max(-other, 0)) for one, other, size in zip(low, high, value.shape, strict=True)
        ]
        of_each = (slice(None),)
        found[of_each + tuple(into)] = value.terms[of_each + tuple(of)]
        return Tensor(found)

    def joined(self, values: Sequence[Tensor], dim: int) -> Tensor:
        return Tensor(np.concatenate(self._together(values), axis=1 + dim))

    def _together(self, values: Sequence[Tensor]) -> list[Any]:
        """Returns the arrays of values, all for the same number of devices."""
        devices = max(len(value.terms) for value in values)
        self.spend(sum(devices * prod(value.shape) for value in values))
        return [np.broadcast_to(value.terms, (devices, *value.shape)) for value in values]

    def pointwise(self, op: tuple[Any, ...], values: Sequence[Tensor]) -> Tensor:
        return Tensor(self._applied(op, self._together(values)))

    def _applied(self, op: tuple[Any, ...], arrays: Sequence[Any]) -> Any:
        rows = np.stack(np.broadcast_arrays(*arrays), axis=-1)
        found = self._by_row(rows.reshape(-1, len(arrays)), lambda row: self.terms.applied(op, tuple(row)))
        return found.reshape(rows.shape[:-1])

    def _by_row(self, rows: Any, compute: Callable[[Any], int]) -> Any:
        """Returns the term that is computed from each row; equal rows are computed once."""
        if not len(rows):
            return np.zeros(0, np.int64)
        flat = rows.reshape(len(rows), -1)
        if flat.shape[1] == 0:
            return np.full(len(rows), compute([]), np.int64)
        whole = np.ascontiguousarray(flat).view(np.dtype((np.void, flat.dtype.itemsize * flat.shape[1]))).ravel()
        _, first, at = np.unique(whole, return_index=True, return_inverse=True)
        self.spend(len(first) * (_PER_ROW + _PER_TERM * flat.shape[1]))
        return np.array([compute(row) for row in rows[first].tolist()], np.int64)[at]

    def _combined(self, kind: str, terms: Any, times: int = 1) -> Any:
        """Returns a reduction along the last dimension, in any order."""
        rows = np.sort(terms.reshape(prod(terms.shape[:-1]), terms.shape[-1]), axis=1)
        times = 1 if kind in IDEMPOTENT else times
        return self._by_row(rows, lambda row: self.terms.combined(kind, row * times)).reshape(terms.shape[:-1])

    def reduced(self, kind: str, value: Tensor, dims: Collection[int], axes: Collection[int] = ()) -> Tensor:
        terms, mesh = value.terms, self.mesh.axes
        self.spend(terms.size)
        if axes:
            # Devices by their position on the mesh.
            terms = np.broadcast_to(terms, (self.mesh.devices, *value.shape)).reshape(*mesh, *value.shape)
        first = len(mesh) if axes else 1
        over = [*sorted(axes), *(first + dim for dim in sorted(dims))]
        left = [at for at in range(terms.ndim) if at not in over]
        terms = terms.transpose([*left, *over])
        found = self._combined(kind, terms.reshape(*terms.shape[: len(left)], prod(terms.shape[len(left) :])))
        if axes:
            found = self._repeated(found, axes)
        return Tensor(found)

    def opaque(
        self,
        op: tuple[Any, ...],
        values: Sequence[tuple[Tensor, Sequence[str]]],
        results: Sequence[str],
        core: Collection[str],
        made: Mapping[str, int] | None = None,
        kind: str = "",
        *,
        places: Sequence[tuple[Entry, Sequence[tuple[int, str]]]] = (),
        others: Mapping[str, int] | None = None,
    ) -> Tensor:
        made, sizes = made or {}, dict(others or {})
        for value, labels in values:
            for label, size in zip(labels, value.shape, strict=True):
                if sizes.setdefault(label, size) != size:
                    raise NotCertified("operands differ in shape", str(op[0]))
        kept = [label for label in results if label not in made]
        over = [label for label in sizes if label not in kept]
        order = {label: at for at, label in enumerate((*kept, *over))}
        full = [sizes[label] for label in order]
        devices = max(len(value.terms) for value, _ in values)
        reads = [self._spread(value.terms, [order[label] for label in labels], len(full)) for value, labels in values]
        self.spend(devices * prod(full) * len(values))
        for label in core:
            reads.append(self.index("i64", (0, ((1, order[label]),)), [(size,) for size in full]).terms)
        for (offset, terms), labels_of in places:
            own = (*terms, *((sign, order[label]) for sign, label in labels_of))
            reads.append(self.index("i64", (offset, own), [(size,) for size in full]).terms)
        shape, outs = (devices, *full[: len(kept)]), [made[label] for label in results if label in made]
        if kind and op[0] != "lookup":
            product = reads[0] if len(reads) == 1 else self._applied(("stablehlo.multiply", *op[1:2]), reads)
            return Tensor(
                self._combined(
                    kind, np.broadcast_to(product, (devices, *full)).reshape(*shape, prod(full[len(kept) :]))
                )
            )
        if not over and not outs and op[0] not in ("lookup", "update", "several"):
            return Tensor(np.broadcast_to(self._applied(op, reads), shape))
        rows = np.stack([np.broadcast_to(one, (devices, *full)) for one in reads], axis=-1)
        found = self._by_row(
            rows.reshape(prod(shape), prod(full[len(kept) :]), len(reads)),
            lambda row: self._along(op, row, outs, len(places)),
        ).reshape(shape)
        if outs:
            parts = np.array([self.terms.number(one) for one in range(prod(outs))], np.int64)
            found = self._applied(("part",), (found[..., None], parts)).reshape(*shape, *outs)
            named = [*kept, *(label for label in results if label in made)]
            found = found.transpose([0, *(1 + named.index(label) for label in results)])
        return Tensor(found)

    def _along(self, op: tuple[Any, ...], row: Any, outs: Sequence[int], places: int) -> int:
        """Returns the term of an op for one position from its reads, which are ordered only by the positions in
        them."""
        if op[0] == "lookup":
            return self.terms.looked_up(None, row)
        if op[0] == "update":
            return self.terms.looked_up(row[0][0], [one[1:] for one in row])
        if places:
            # A scatter combines the updates of this position; without updates the element is unchanged.
            base = row[0][op[-1]]
            row = [one for one in row if self.terms.may_equal(one[-2 * places : -places], one[-places:])]
            if not row:
                return int(base)
        if UNKNOWN in (term for one in row for term in one):
            return UNKNOWN
        if op[0] == "several":
            return self.terms.several(op, row)
        return self.terms.term("op", (*op, "makes", *outs), tuple(sorted(map(tuple, row))))

    @staticmethod
    def _spread(terms: Any, at: Sequence[int], rank: int) -> Any:
        """Returns an array with its dimensions at places among all labels; two of one label become the diagonal."""
        for first in range(len(at)):
            for second in range(len(at) - 1, first, -1):
                if at[first] == at[second]:
                    return Symbols._spread(
                        np.moveaxis(terms.diagonal(axis1=1 + first, axis2=1 + second), -1, 1 + first),
                        [*at[:second], *at[second + 1 :]],
                        rank,
                    )
        moved = terms.transpose([0, *(1 + one for one in sorted(range(len(at)), key=at.__getitem__))])
        shape = [1] * rank
        for one, size in zip(sorted(at), moved.shape[1:], strict=True):
            shape[one] = size
        return moved.reshape(len(moved), *shape)

    # Ops between devices.

    def laid_out(self, value: Tensor, axes: Sequence[Sequence[int]]) -> Tensor:
        entries, sizes = list[Entry](), list[int]()
        for dim, (size, along) in enumerate(zip(value.shape, axes, strict=True)):
            local = -(-size // prod(self.mesh.axes[axis] for axis in along))
            entries.append((0, (*self.mesh.along(along, local), (1, dim))))
            sizes.append(local)
        return self.accessed(value, entries, sizes, "layout", bounded=False)

    def given(self, leaf: Tensor, axes: Sequence[Sequence[int]]) -> Tensor:
        return self.laid_out(leaf, axes)

    def gathered(self, value: Tensor, dim: int, axes: Sequence[int]) -> Tensor:
        if not axes:
            return value
        mesh, count = self.mesh.axes, prod(self.mesh.axes[axis] for axis in axes)
        self.spend(self.mesh.devices * prod(value.shape) * count)
        terms = np.broadcast_to(value.terms, (self.mesh.devices, *value.shape)).reshape(*mesh, *value.shape)
        rest = [axis for axis in range(len(mesh)) if axis not in axes]
        first = len(mesh)
        order = [*rest, *range(first, first + dim), *axes, *range(first + dim, terms.ndim)]
        joint = list(value.shape)
        joint[dim] *= count
        return Tensor(self._repeated(terms.transpose(order).reshape(*(mesh[axis] for axis in rest), *joint), axes))

    def _repeated(self, terms: Any, axes: Collection[int]) -> Any:
        """Returns the terms of each device from those by the other mesh axes; devices along `axes` share them."""
        mesh = self.mesh.axes
        shape = terms.shape[len(mesh) - len(axes) :]
        found = terms.reshape(*(1 if axis in axes else size for axis, size in enumerate(mesh)), *shape)
        return np.broadcast_to(found, (*mesh, *shape)).reshape(self.mesh.devices, *shape)

    def of_each(self, value: Tensor) -> Any:
        """Returns the terms of each device."""
        return np.broadcast_to(value.terms, (self.mesh.devices, *value.shape))

    @staticmethod
    def _where(chosen: Any, first: Any, second: Any) -> Tensor:
        return Tensor(np.where(chosen.reshape(-1, *(1 for _ in first.shape[1:])), first, second))

    def received(self, value: Tensor, senders: Any) -> Tensor:
        return self._where(senders >= 0, self.of_each(value)[np.maximum(senders, 0)], UNKNOWN)

    def merged(self, chosen: Any, first: Tensor, second: Tensor) -> Tensor:
        return self._where(chosen, self.of_each(first), self.of_each(second))

    def assembled(self, base: Tensor, tile: Tensor, places: Any) -> Tensor:
        found, part = self.of_each(base).copy(), self.of_each(tile)
        self.spend(found.size)
        for device, start in enumerate(places.T.tolist()):
            boxes = [
                (max(at, 0), min(at + size, whole), at)
                for at, size, whole in zip(start, tile.shape, base.shape, strict=False)
            ]
            if all(low < high for low, high, _ in boxes):
                here = tuple(slice(low, high) for low, high, _ in boxes)
                found[device][here] = part[device][tuple(slice(low - at, high - at) for low, high, at in boxes)]
        return Tensor(found)

    def is_shard(self, found: Tensor, value: Tensor, axes: Sequence[Sequence[int]]) -> bool:
        if len(axes) != value.rank:
            return False
        inside = Tensor(np.full((1, *value.shape), self.terms.number(True), np.int64))
        wanted, matters = (self.of_each(self.laid_out(one, axes)) for one in (value, inside))
        if wanted.shape[1:] != found.shape:
            return False
        return bool(((self.of_each(found) == wanted) & (wanted != UNKNOWN) | (matters == UNKNOWN)).all())

    # Queries of tensors.

    def _number(self, value: Tensor) -> Any:
        """Returns the number that all elements of a value equal; None if they are not one number."""
        terms = value.terms.reshape(-1)
        return self.terms.value(int(terms[0])) if len(terms) and (terms == terms[0]).all() else None

    def is_number(self, value: Tensor) -> bool:
        return self._number(value) is not None

    def number_of(self, value: Tensor, lemma: str) -> str:
        found = self._number(value)
        if found is None:
            raise NotCertified("a number that is not constant", lemma)
        return repr(found)

    def _numbers(self, value: Tensor) -> list[Any]:
        """Returns the number of a scalar on each device; None on devices where it is not a number."""
        return [self.terms.value(one) for one in self.of_each(value).ravel().tolist()]

    def entry_of_devices(self, entries: Any) -> Entry:
        """Returns the index with the given number on each device."""
        low = int(entries.min())
        return low, ((1, self.mesh.table(entries - low)),)

    def entry(self, value: Tensor) -> Entry | None:
        if value.rank:
            return None
        numbers = self._numbers(value)
        return self.entry_of_devices(np.array(numbers, np.int64)) if all(type(one) is int for one in numbers) else None

    def truth(self, value: Tensor) -> Any:
        numbers = self._numbers(value) if not value.rank else [None]
        return np.array(numbers, bool) if all(type(one) is bool for one in numbers) else None

    def differs(self, value: Tensor, axes: Collection[int] | None = None) -> bool:
        terms = self.of_each(value).reshape(*self.mesh.axes, *value.shape)
        over = range(len(self.mesh.axes)) if axes is None else axes
        return any((terms != terms.take([0], axis=axis)).any() for axis in over)
