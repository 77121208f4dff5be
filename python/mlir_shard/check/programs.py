# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads a program from its arguments to its results: functions, calls, loops and branches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mlir_shard.check.kernel.kinds import NotCertified
from mlir_shard.check.ops.reading import READERS, Reading, reads
from mlir_shard.check.ops.structured import is_structured, structured
from mlir_shard.check.ops.tensors import Tensors, Value
from mlir_shard.host import ir

Axes = tuple[tuple[int, ...], ...]
"""The mesh axes that divide each dimension, major to minor."""
_PURE = ("stablehlo.", "chlo.", "arith.", "math.", "tensor.", "linalg.", "complex.", "tosa.")
_IMPURE = frozenset(
    f"stablehlo.{name}"
    for name in re.findall(
        r"\S+",
        "rng all_gather all_reduce all_to_all collective_broadcast collective_permute reduce_scatter infeed outfeed "
        "send recv partition_id replica_id custom_call while if case after_all create_token composite",
    )
)
LOOPS = ("stablehlo.while",)
BRANCHES = ("stablehlo.if", "stablehlo.case", "scf.if")
_BETWEEN_TWO = ("shard.send", "shard.recv", "shard.process_multi_index", "shard.process_linear_index")
MOST_TRIALS = 4
"""The number of pairs of a loop and layouts that are tried for a loop of the local program."""


@reads("sdy.sharding_constraint", "sdy.reshard", "sdy.propagation_barrier", "sdy.sharding_group")
def _annotation(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return values[: len(op.results)]


@reads("sdy.constant")
def _constant(reading: Reading, op: Any, values: list[Value]) -> list[Value]:
    return [reading.constant(op.attributes["value"], op.results[0].type)]


_OF_TILES = frozenset(
    ("stablehlo.slice", "stablehlo.dynamic_update_slice", "tensor.extract_slice", "tensor.insert_slice")
)


class Refused(Exception):
    """Raised if a program is not proved, with the op and the failure."""

    def __init__(self, op: Any, failure: NotCertified) -> None:
        super().__init__(failure.message)
        self.op, self.failure = op, failure


@dataclass(frozen=True)
class Loop:
    """A loop of the global program: its initial and carried values, those that its regions make, and its results."""

    depth: int
    initial: list[Value]
    carried: list[Value]
    made: tuple[Value, ...]
    results: list[Value]


class Program(Reading):
    """A program that is read; the global one records its loops, and those of the local one are compared with them."""

    def __init__(
        self, tensors: Tensors, name: str, module: Any, positions: Any, hints: Sequence[Any], axis_names: Sequence[str]
    ) -> None:
        super().__init__(tensors, name)
        self.position_of, self.hints = positions, hints
        self.active = positions >= 0
        self.axis_names = tuple(axis_names)
        self.different: tuple[Value, Value] | None = None
        self.functions = {
            op.operation.attributes["sym_name"].value: op.operation
            for op in module.operation.regions[0].blocks[0].operations
            if op.operation.name == "func.func"
        }
        self.ops = 0
        self.loops: list[Loop] = []
        self.known_loops: list[Loop] | None = None
        self._met = 0
        self._level = 0
        self._unknown = 0
        self.failure: Refused | None = None
        self.communicates: Refused | None = None
        self.lost: dict[str, int] = {}
        self._depth = 0

    def read(self, name: str, arguments: Sequence[Value]) -> list[Value]:
        """Returns the results of a function."""
        function = self.functions.get(name)
        if function is None or not len(function.regions[0].blocks):
            raise NotCertified(f"function @{name} has no body", "call")
        return self.block(function.regions[0].blocks[0], arguments)

    def block(self, block: Any, arguments: Sequence[Value]) -> list[Value]:
        """Returns the operands of the terminator of a block."""
        environment = self.environment
        environment.update(zip(block.arguments, arguments, strict=True))
        found: list[Value] = []
        for op in block.operations:
            op = op.operation
            found = [environment[operand] for operand in op.operands]
            if op.name not in _OF_TILES:
                found = [self.tensors.whole(value) for value in found]
            if op.name in ("func.return", "stablehlo.return", "scf.yield", "sdy.return"):
                return found
            environment.update(zip(op.results, self.results(op, found), strict=True))
        return found

    def results(self, op: Any, values: list[Value]) -> list[Value]:
        """Returns the results of an op; results of an op that is not certified are values that equal no others."""
        self.tensors.at(op)
        self.ops += 1
        try:
            if len(op.results):
                self.element = self.type_of(op.results[0].type)[1]
            if not self.active.all() and _communicates(op) and op.name not in _BETWEEN_TWO:
                raise NotCertified("only some devices take part", "branch")
            reader = READERS.get(op.name)
            if reader is not None:
                found = reader(self, op, values)
            elif op.name in (*LOOPS, *BRANCHES):
                found = self.region(op, values)
            elif op.name == "sdy.manual_computation":
                found = self.manual(op, values)
            elif op.name == "sdy.named_computation":
                found = self.block(op.regions[0].blocks[0], values)
            elif op.name == "func.call":
                found = self.call(op, values)
            elif is_structured(op):
                found = structured(self, op, values)
            else:
                found = self.unknown(op, values)
            for result, value in zip(op.results, found, strict=True):
                if self.type_of(result.type)[0] != value.shape:
                    raise NotCertified(f"a result of shape {value.shape}", "shape")
            return found
        except NotCertified as failure:
            if self.tensors.is_exact:
                raise Refused(op, failure) from None
            if self.failure is None:
                self.failure = Refused(op, failure)
            if self.communicates is None and _communicates(op):
                self.communicates = Refused(op, failure)
            self.lost[f"{op.name}: {failure.message}"] = self.lost.get(f"{op.name}: {failure.message}", 0) + 1
            return [self.nothing(result.type) for result in op.results]

    def nothing(self, type_: Any) -> Value:
        """Returns an unknown value, which equals no other."""
        shape = tuple(type_.shape) if isinstance(type_, ir.RankedTensorType) else ()
        self._unknown += 1
        return self.tensors.leaf(("unknown", self.name, self._unknown), [one if one >= 0 else 1 for one in shape])

    def unknown(self, op: Any, values: list[Value]) -> list[Value]:
        """Returns the results of an op that works along all dimensions: the same function of the same operands."""
        impure = "has_side_effect" in op.attributes and op.attributes["has_side_effect"].value
        if op.name == "stablehlo.custom_call" and not impure:
            self.trusted.add(f"custom call {op.attributes['call_target_name']}")
        elif not op.name.startswith(_PURE) or op.name in _IMPURE or not self._is_pure(op):
            raise NotCertified("no lemma", op.name)
        batch = _batch_dims(op)
        operands = [
            (value, [f"b{dim}" if dim < batch else f"{at}.{dim}" for dim in range(value.rank)])
            for at, value in enumerate(values)
        ]
        core = [label for _, labels in operands for label in labels if label[0] != "b"]
        key = (op.name, self.key(op, ("operand_layouts", "result_layouts")), self.region_key(op))
        found = []
        for at, result in enumerate(op.results):
            shape, element = self.type_of(result.type)
            made = {f"o{dim}": size for dim, size in enumerate(shape) if dim >= batch}
            results = [f"b{dim}" for dim in range(batch)] + list(made)
            found.append(self.tensors.opaque((*key, element, at), operands, results, core, made))
        return found

    def _is_pure(self, op: Any) -> bool:
        return all(
            one.operation.name.startswith(_PURE)
            and one.operation.name not in _IMPURE - {"stablehlo.return"}
            and self._is_pure(one.operation)
            for region in op.regions
            for block in region.blocks
            for one in block.operations
        )

    def call(self, op: Any, values: list[Value]) -> list[Value]:
        """Returns the results of a call, which are those of the body of its function."""
        if self._depth > 64:
            raise NotCertified("calls are nested too deeply", "call")
        self._depth += 1
        found = self.read(str(op.attributes["callee"]).removeprefix("@"), values)
        self._depth -= 1
        return found

    def region(self, op: Any, values: list[Value]) -> list[Value]:
        """Returns the results of a loop or a branch."""
        blocks = [region.blocks[0] for region in op.regions if len(region.blocks)]
        if op.name in BRANCHES:
            chosen = self.tensors.truth(values[0])
            if chosen is not None and op.name != "stablehlo.case":
                if chosen.all() or not chosen.any():
                    # All devices take one branch.
                    taken = blocks[:1] if chosen.all() else blocks[1:]
                    return self.block(taken[0], ()) if taken else []
                return self._by_device(blocks, chosen)
            if self.tensors.differs(values[0]):
                raise NotCertified("devices take different branches", op.name)
            found = [self.block(block, ()) for block in blocks]
            return [self._chosen(values[0], branches) for branches in zip(*found, strict=True)]
        self._met += 1
        if self.known_loops is None:
            return self._loop(op, blocks, values)
        return self._local_loop(op, blocks, values, self._met - 1)

    def _by_device(self, blocks: Sequence[Any], chosen: Any) -> list[Value]:
        """Returns the results of a branch whose condition is known for each device."""
        outer, found = self.active, list[list[Value]]()
        for block, where in zip(blocks, (chosen, ~chosen), strict=False):
            self.active = outer & where
            try:
                found.append(self.block(block, ()))
            finally:
                self.active = outer
        return [self.tensors.merged(chosen, *both) for both in zip(*found, strict=True)] if len(found) > 1 else []

    def _chosen(self, condition: Value, branches: Sequence[Value]) -> Value:
        if all(branch == branches[0] for branch in branches):
            return branches[0]
        labels = [str(dim) for dim in range(branches[0].rank)]
        operands = [(condition, ()), *((branch, labels) for branch in branches)]
        return self.tensors.opaque(("branch",), operands, labels, ())

    def _made(self, blocks: Sequence[Any], carried: list[Value]) -> tuple[Value, ...]:
        """Returns the condition of a loop, then the values that its body makes."""
        self._level += 1
        try:
            found = [one for block in blocks for one in self.block(block, carried)]
        finally:
            self._level -= 1
        return tuple(found)

    def _loop(self, op: Any, blocks: Sequence[Any], values: list[Value]) -> list[Value]:
        types = [self.type_of(result.type) for result in op.results]
        leaf = self.tensors.leaf
        carried = [leaf(("carried", self._level, at, element), shape) for at, (shape, element) in enumerate(types)]
        made = self._made(blocks, carried)
        results = [leaf(("loop", at, element, tuple(values), made), shape) for at, (shape, element) in enumerate(types)]
        self.loops.append(Loop(self._level, values, carried, made, results))
        return results

    def _local_loop(self, op: Any, blocks: Sequence[Any], values: list[Value], number: int) -> list[Value]:
        """Returns the results of a loop whose carried values keep layouts of those of a loop of the global program."""
        tried = 0
        known = [one for one in self.known_loops or () if one.depth == self._level]
        for loop in known:
            if len(loop.initial) != len(values):
                continue
            for layouts in dict.fromkeys((*self.hints[number : number + 1], *self.hints)):
                if not self._starts(loop, layouts, values) or tried >= MOST_TRIALS:
                    continue
                tried += 1
                carried = [self.tensors.given(*one) for one in zip(loop.carried, layouts, strict=True)]
                before = self.failure, dict(self.lost), self._met
                try:
                    made = self._made(blocks, carried)
                except Refused:
                    continue
                wanted = list(zip(loop.made, ((), *layouts), strict=True))
                same = [self.tensors.is_shard(one, *other) for one, other in zip(made, wanted, strict=True)]
                if all(same):
                    return [self.tensors.given(*one) for one in zip(loop.results, layouts, strict=True)]
                failed = same.index(False)
                self.different = self.different or (wanted[failed][0], made[failed])
                if self.failure is None or tried < MOST_TRIALS:
                    self.failure, self.lost, self._met = before
        raise NotCertified(
            "its body does not preserve the layouts of its loop-carried values"
            if tried
            else "no loop of the global program has the same initial values",
            "loop",
        )

    def _starts(self, loop: Loop, layouts: Sequence[Axes], values: Sequence[Value]) -> bool:
        """Returns whether values are shards of the initial values of a loop of the global program."""
        if len(layouts) != len(values):
            return False
        for first, axes, value in zip(loop.initial, layouts, values, strict=True):
            if len(axes) != first.rank or not self.tensors.is_shard(value, first, axes):
                return False
        return True

    def manual(self, op: Any, values: list[Value]) -> list[Value]:
        """Returns the results of a manual computation: its body has shards along manual axes, gathered afterwards."""
        axes = {axis for name in names_in(str(op.attributes["manual_axes"])) for axis in self.mesh_axes(name)}
        given, made = (self.shardings(op.attributes[name]) for name in ("in_shardings", "out_shardings"))
        inner = []
        for value, dims in zip(values, given, strict=True):
            own = [[axis for axis in dim if axis in axes] for dim in dims]
            mesh = self.tensors.mesh.axes
            if any(size % prod(mesh[axis] for axis in along) for size, along in zip(value.shape, own, strict=True)):
                raise NotCertified("uneven shards", "manual computation")
            inner.append(self.tensors.laid_out(value, own))
        found = []
        for value, dims in zip(self.block(op.regions[0].blocks[0], inner), made, strict=True):
            for dim, along in enumerate(dims):
                value = self.tensors.gathered(value, dim, [axis for axis in along if axis in axes])
            if self.tensors.differs(value, axes):
                raise NotCertified(
                    "devices have different results along axes declared replicated", "manual computation"
                )
            found.append(value)
        return found

    def shardings(self, attribute: Any) -> list[list[list[int]]]:
        """Returns the mesh axes of each dimension of each value."""
        found = []
        text = quoted(str(attribute))
        if "unreduced" in text:
            raise NotCertified("unreduced axes", "manual computation")
        for dims in re.findall(r"<(?:@[^,]*|mesh<.*?>), \[(.*?)\](?:, replicated=\{.*?\})?>", text):
            found.append(
                [
                    [axis for name in names_in(dim) for axis in self.mesh_axes(name)]
                    for dim in re.findall(r"\{(.*?)\}", dims)
                ]
            )
        return found

    def mesh_axes(self, name: str) -> list[int]:
        """Returns the mesh axes of the certificate that an axis or a sub-axis consists of, major to minor."""
        if name in self.axis_names:
            return [self.axis_names.index(name)]
        parts = [
            (int(re.findall(r"\d+", one.rpartition(":(")[2])[0]), at)
            for at, one in enumerate(self.axis_names)
            if one.startswith(f"{name}:(")
        ]
        if not parts:
            raise NotCertified(f"the certificate has no axis {name}", "manual computation")
        return [at for _, at in sorted(parts)]


def names_in(text: str) -> list[str]:
    """Returns the axes and sub-axes that are named in a text."""
    return [name + part for name, part in re.findall(r'"(\w+)"((?::\(\d+\)\d+)?)', quoted(text))]


def quoted(text: str) -> str:
    """Returns the text of an attribute of sdy, without the escapes of a string attribute."""
    return text[text.find('<"') + 2 :].replace("\\22", '"') if '<"' in text else text


def _communicates(op: Any) -> bool:
    """Returns whether an op, or one in its regions, has effects besides its results."""
    if not op.name.startswith(_PURE) or op.name in _IMPURE:
        return (op.name not in BRANCHES and op.name not in LOOPS) or any(map(_communicates, _inside(op)))
    return any(map(_communicates, _inside(op)))


def _inside(op: Any) -> list[Any]:
    return [
        one.operation
        for region in op.regions
        for block in region.blocks
        for one in block.operations
        if one.operation.name not in ("scf.yield", "stablehlo.return")
    ]


def _batch_dims(op: Any) -> int:
    """Returns the number of leading batch dimensions of a custom call, which its frontend attributes declare."""
    if op.name != "stablehlo.custom_call" or "mhlo.frontend_attributes" not in op.attributes:
        return 0
    found = re.search(r'num_batch_dims = "(\d+)"', str(op.attributes["mhlo.frontend_attributes"]))
    return int(found[1]) if found else 0


def axes_of(names: Sequence[Sequence[str]], mesh: Mapping[str, int]) -> Axes:
    """Returns the axes that names in the certificate refer to."""
    order = list(mesh)
    return tuple(tuple(order.index(name) for name in dim) for dim in names)
