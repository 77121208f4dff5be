# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The canonical node of an op: equal ops on equal operands are one node, however dimensions are cut into digits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any

from mlir_shard.check.kernel.indices import Entry, entry_of
from mlir_shard.check.kernel.kinds import IDEMPOTENT, NotCertified
from mlir_shard.check.kernel.mesh import Mesh
from mlir_shard.check.lemmas.indices import Bound, Index, is_inside, linear, refined, substituted
from mlir_shard.check.lemmas.nodes import Nodes
from mlir_shard.check.lemmas.ranges import Access, relevant, valid
from mlir_shard.check.lemmas.values import Node, Read, Value
from mlir_shard.check.ops.tensors import Tensors
from mlir_shard.deferred import numpy as np

MULTIPLIES = ("stablehlo.multiply", "arith.mulf", "arith.muli")
UNLIMITED: tuple[Bound, ...] = ((None, None),)


def _reduces(node: Node, kind: str) -> bool:
    last = node.op[-1]
    return isinstance(last, tuple) and last[:2] == ("reduce", kind)


class Canonical(Tensors):
    """Ops as canonical nodes, over the nodes of one check."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh, self.nodes = mesh, Nodes(mesh)
        self._position = self.nodes.node(("position",), UNLIMITED, (), ())

    @staticmethod
    def _starts(dims: Sequence[Sequence[int]]) -> list[int]:
        starts, total = [0], 0
        for dim in dims:
            total += len(dim)
            starts.append(total)
        return starts

    def _aligned(
        self, values: Sequence[tuple[Value, Sequence[str]]], lemma: str
    ) -> tuple[dict[str, tuple[int, ...]], list[Index], dict[str, int]]:
        """Returns common digits of each label, the indices of the values in them, and the first digit of each label."""
        factors: dict[str, list[tuple[int, ...]]] = {}
        unused: dict[str, tuple[int, ...]] = {}
        shapes: dict[str, int] = {}
        for value, labels in values:
            occurring = {variable for _, terms in value.index for _, variable in terms}
            first = 0
            for label, sizes in zip(labels, value.dims, strict=True):
                size = prod(sizes)
                if shapes.setdefault(label, size) != size:
                    raise NotCertified("operands differ in shape", lemma)
                if occurring.isdisjoint(range(first, first + len(sizes))):
                    unused.setdefault(label, sizes)
                else:
                    factors.setdefault(label, []).append(sizes)
                first += len(sizes)
        dims: dict[str, tuple[int, ...]] = {}
        for label in shapes:
            fine = refined(*factors[label]) if label in factors else unused[label]
            if fine is None:
                raise NotCertified("operands are divided incompatibly: neither division refines the other", lemma)
            dims[label] = fine
        starts, total = dict[str, int](), 0
        for label, fine in dims.items():
            starts[label] = total
            total += len(fine)
        indices = []
        for value, labels in values:
            occurring = {variable for _, terms in value.index for _, variable in terms}
            by, first = dict[Any, Entry](), 0
            for label, sizes in zip(labels, value.dims, strict=True):
                if not occurring.isdisjoint(range(first, first + len(sizes))):
                    new, taken = starts[label], 0
                    for one, size in enumerate(sizes):
                        terms, left = list[tuple[int, int]](), size
                        while left > 1:
                            left //= dims[label][taken]
                            terms.append((left, new + taken))
                            taken += 1
                        by[first + one] = (0, tuple(terms))
                first += len(sizes)
            indices.append(tuple(substituted(entry, by) for entry in value.index))
        return dims, indices, starts

    def opaque(
        self,
        op: tuple[Any, ...],
        values: Sequence[tuple[Value, Sequence[str]]],
        results: Sequence[str],
        core: Collection[str],
        made: Mapping[str, int] | None = None,
        kind: str = "",
        extra: Collection[int] = (),
        *,
        keeps: bool = False,
        places: Sequence[tuple[Entry, Sequence[tuple[int, str]]]] = (),
        others: Mapping[str, int] | None = None,
    ) -> Value:
        """Returns the result of an op that is the same for each position of labels outside of `core`; see `Tensors`.

        Args:
            extra: mesh axes that are reduced too.
            keeps: whether the digits of dimensions are kept unchanged.
        """
        dims, indices, starts = self._aligned(values, str(op[0]))
        for label, size in (others or {}).items():
            starts[label], dims[label] = sum(map(len, dims.values())), (size,)
        made, total = made or {}, sum(map(len, dims.values()))
        classes: dict[int, str] = {-1 - axis: "r" for axis in extra}
        sizes: dict[int, int] = {-1 - axis: size for axis, size in enumerate(self.mesh.sizes)}
        reads: list[Read] = [(value.node, index) for (value, _), index in zip(values, indices, strict=True)]
        for label, fine in dims.items():
            for digit, size in enumerate(fine, starts[label]):
                sizes[digit] = size
                if label in core:
                    classes[digit] = "c" + label
                elif label not in results:
                    classes[digit] = "r"
            if label in core:
                strides = {
                    digit: prod(fine[digit - starts[label] + 1 :])
                    for digit in range(starts[label], starts[label] + len(fine))
                }
                reads.append((self._position, (entry_of(0, strides),)))
        for (offset, terms), labels in places:
            found = dict(linear(terms))
            for sign, label in labels:
                for at in range(len(dims[label])):
                    found[starts[label] + at] = sign * prod(dims[label][at + 1 :])
            reads.append((self._position, (entry_of(offset, found),)))
        outs: list[tuple[int, ...]] = []
        order: list[int] = []
        for label in results:
            if label in made:
                dims[label] = (made[label],)
                starts[label] = total
                sizes[total], classes[total] = made[label], "o" + label
                total += 1
            outs.append(dims[label])
            order += range(starts[label], starts[label] + len(dims[label]))
        made_digits = [starts[label] for label in made]
        node, index = self._built(op, kind, reads, sizes, classes, made_digits)
        by: dict[Any, Entry] = {digit: (0, ((1, new),)) for new, digit in enumerate(order)}
        moved = tuple(substituted(entry, by) for entry in index)
        return Value(node, moved, tuple(outs)) if keeps else self.nodes.value(node, moved, outs)

    def _built(
        self,
        op: tuple[Any, ...],
        kind: str,
        reads: Sequence[Read],
        sizes: dict[int, int],
        classes: dict[int, str],
        made: Sequence[int],
    ) -> tuple[Node, Index]:
        """Returns the canonical node of an op, and its index in the given variables."""
        given, limits = (op, reads, dict(sizes), dict(classes)), list[Read]()
        op, reads, limits = self._flattened(op, kind, reads, sizes, classes)
        reads = [self.nodes.narrowed(inner, index, sizes.__getitem__) for inner, index in reads]
        count, reads = len(reads), [*reads, *limits]
        groups = self._groups(reads, sizes, classes, made)
        group_of = {digit: at for at, group in enumerate(groups) for digit in group}
        if any(len({group_of[one] for _, one in index[0][1]}) > 1 for _, index in limits):
            # The positions at which the inner reduction is known are not a range of one variable.
            op, reads, sizes, classes = given
            return self._canonical(
                op, kind, reads, len(reads), self._groups(reads, sizes, classes, made), sizes, classes, made
            )
        return self._canonical(op, kind, reads, count, groups, sizes, classes, made)

    def _canonical(
        self,
        op: tuple[Any, ...],
        kind: str,
        reads: Sequence[Read],
        count: int,
        groups: list[list[int]],
        sizes: Mapping[int, int],
        classes: Mapping[int, str],
        made: Sequence[int],
    ) -> tuple[Node, Index]:
        """Returns the node over groups of variables, and its index; reads from `count` on only limit its bounds."""
        times = 1
        if kind and kind not in IDEMPOTENT:
            seen = {digit for group in groups for digit in group}
            times = prod(size for digit, size in sizes.items() if classes.get(digit) == "r" and digit not in seen)
        counts = [prod(sizes[digit] for digit in group) for group in groups]
        kinds = [classes.get(group[-1], "b") for group in groups]
        accesses = [
            Access(
                inner,
                tuple(offset for offset, _ in index),
                tuple(
                    {at: of[group[-1]] for at, group in enumerate(groups) if of.get(group[-1])}
                    for of in (linear(terms) for _, terms in index)
                ),
            )
            for inner, index in reads
        ]
        lows = [0] * len(groups)
        for at, of_kind in enumerate(kinds):
            if of_kind == "b":
                low, high = valid(at, counts[at], accesses)
            elif of_kind == "r":
                low, high = relevant(at, counts[at], kind, op, accesses[:count])
            else:
                continue
            if (low, high) != (0, counts[at]) and low < high:
                lows[at], counts[at] = low, high - low
                accesses = [one.from_(at, low) for one in accesses]
        free = [at for at, of_kind in enumerate(kinds) if of_kind[0] in "bo"]
        bound = [at for at in range(len(groups)) if at not in free and (kinds[at] != "r" or counts[at] != 1)]
        number = {at: new for new, at in enumerate([*free, *bound])}
        final = {new: counts[at] for at, new in number.items()}
        found = []
        for one in accesses[:count]:
            index = tuple(
                entry_of(offset, {number[at]: stride for at, stride in of.items() if at in number})
                for offset, of in zip(one.offsets, one.strides, strict=True)
            )
            found.append(self.nodes.narrowed(one.node, index, final.__getitem__))
        name = (*op, ("reduce", kind, times)) if kind else op
        over = tuple((kinds[at], counts[at]) for at in bound)
        node = self.nodes.node(name, tuple((0, counts[at]) for at in free), over, tuple(found), len(made))
        return node, tuple(
            entry_of(
                -lows[at],
                {digit: prod(sizes[one] for one in groups[at][place + 1 :]) for place, digit in enumerate(groups[at])},
            )
            for at in free
        )

    def _flattened(
        self,
        op: tuple[Any, ...],
        kind: str,
        reads: Sequence[Read],
        sizes: dict[int, int],
        classes: dict[int, str],
    ) -> tuple[tuple[Any, ...], Sequence[Read], list[Read]]:
        """Merges a reduction of one of the same kind, or a sum of products, into one along the variables of both.

        Returns the op, its reads, and reads that only limit its bounds.
        """
        node, index = reads[0]
        if kind and op == ("identity",) and node.op[0] == "extended":
            # Padding of dimensions that are not reduced is not needed.
            inner = node.reads[0][0]
            padded = [entry for entry, sides in zip(index, node.op[2], strict=True) if any(sides)]
            is_reduced = inner.op[0] in MULTIPLIES or _reduces(inner, kind)
            if is_reduced and not any(classes.get(one, "b") != "b" for entry in padded for _, one in entry[1]):
                node = inner
        is_product = kind == "add" and node.op[0] in MULTIPLIES
        left: list[Read] = []
        if op[0] == "several":
            # All results of one reduction are reduced, with its initial numbers.
            count = len(reads) // 2
            operands, left = reads[:count], [(one, tuple(i)) for one, i in reads[count:]]
            if any(
                one.op != (*op[:2], at) or one.reads != node.reads or i != index or one.reads[count:] != tuple(left)
                for at, (one, i) in enumerate(operands)
            ):
                return op, reads, []
        elif not kind or op != ("identity",) or not (is_product or _reduces(node, kind)):
            return op, reads, []
        limits = list[Read]()
        for entry, bound in zip(index, node.bounds, strict=True):
            if is_inside(entry, bound, sizes.__getitem__):
                continue
            if any(classes.get(variable, "b") != "b" for _, variable in entry[1]):
                return op, reads, []
            limits.append((self.nodes.node(("limit",), (bound,), (), ()), (entry,)))
        by: dict[Any, Entry] = dict(enumerate(index))
        new = max(sizes, default=0) + 1
        for one, (of_class, size) in enumerate(node.sizes, len(node.bounds)):
            sizes[new], classes[new] = size, of_class
            by[one] = (0, ((1, new),))
            new += 1
        if not is_product and op[0] != "several":
            # The count of elements added several times is a variable that no read has.
            sizes[new], classes[new] = node.op[-1][2], "r"
        found = [(inner, tuple(substituted(entry, by) for entry in entries)) for inner, entries in node.reads]
        if op[0] == "several":
            return op, found, limits
        return ("product", *node.op[1:]) if is_product else node.op[:-1], found, limits

    def _groups(
        self, reads: Sequence[Read], sizes: Mapping[int, int], classes: Mapping[int, str], made: Sequence[int]
    ) -> list[list[int]]:
        """Returns the variables in the order in which they first occur, grouped if they are always adjacent digits."""
        order: dict[int, None] = {}
        rows = [linear(terms) for _, index in reads for _, terms in index]

        def key(term: tuple[int, Any]) -> Any:
            one = term[1]
            column = [row.get(one, 0) for row in rows] if is_tied else ()
            return -abs(term[0]), classes.get(one, "b"), column, one < 0, abs(one)

        for _, index in reads:
            for _, terms in index:
                is_tied = len({abs(stride) for stride, _ in terms}) < len(terms)
                for _, variable in sorted(terms, key=key):
                    if sizes[variable] > 1:
                        order.setdefault(variable)
        groups: list[list[int]] = []
        for variable in order:
            kind, size = classes.get(variable, "b"), sizes[variable]
            for group in groups:
                last = group[-1]
                if classes.get(last, "b") == kind and all(of.get(last, 0) == of.get(variable, 0) * size for of in rows):
                    group.append(variable)
                    break
            else:
                groups.append([variable])
        return groups + [[variable] for variable in made]

    def entry_of_devices(self, entries: Any, matters: Any = None, *, like: Entry = (0, ())) -> Entry:
        """Returns an index that equals `entries` on each device that matters: affine if possible, else a table.

        On other devices the index is arbitrary. Along axes on which the devices that matter do not differ, an affine
        index has the strides of `like`.
        """
        mesh, places = self.mesh.axes, self.mesh.places()
        chosen = np.ones(entries.shape, bool) if matters is None else matters
        if not chosen.any():
            return 0, ()
        known, at = entries[chosen], places[:, chosen]
        strides = {-1 - one: stride for stride, one in like[1] if 0 <= -1 - one < len(mesh)}
        for axis in range(len(mesh)):
            others = np.ones(at.shape[1], bool)
            for one in range(len(mesh)):
                others &= (at[one] == at[one, 0]) | (one == axis)
            different = np.flatnonzero(others & (at[axis] != at[axis, 0]))
            if len(different):
                step, distance = int(known[different[0]] - known[0]), int(at[axis, different[0]] - at[axis, 0])
                strides[axis] = step // distance
        offset = int(known[0]) - sum(stride * int(at[axis, 0]) for axis, stride in strides.items())
        fit = offset + sum((stride * at[axis] for axis, stride in strides.items()), np.zeros(at.shape[1], np.int64))
        if np.array_equal(fit, known):
            return entry_of(offset, {-1 - axis: stride for axis, stride in strides.items()})
        filled = np.where(chosen, entries, known[0])
        low = int(filled.min())
        return low, ((1, self.mesh.table(filled - low)),)
