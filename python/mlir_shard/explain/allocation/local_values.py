# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A local program as plain values: blocks of operations that define and use numbered tensors of known size.

Properties that depend on the name, attributes and result types of an operation are read once for all operations that
agree in these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.arrays import ModuleArrays
from mlir_shard.ir.values import element_size
from mlir_shard.passes.registry import PassFailure


@dataclass(frozen=True, slots=True)
class Tensor:
    """The memory of a value.

    Attributes:
        bytes: the bytes of its elements; 0 for values that are not tensors, such as tokens.
        shape: its sizes.
        element: the bytes of one element.
        type: the name of its type.
    """

    bytes: int
    shape: tuple[int, ...]
    element: int
    type: str

    @property
    def elements(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def rank(self) -> int:
        """The number of dimensions whose size is not 1."""
        return sum(size != 1 for size in self.shape)


@dataclass(frozen=True, slots=True)
class Signature:
    """The properties shared by operations of one name, attributes and result types; `op` is one of them."""

    number: int
    name: str
    results: tuple[Tensor, ...]
    op: Any


@dataclass(slots=True)
class Op:
    """An operation; `captured` are the outer values that its regions use, unless the regions are in `blocks`."""

    number: int
    signature: Signature
    operands: list[int]
    results: list[int]
    blocks: list[Block]
    captured: list[int]

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self.signature.name


@dataclass(slots=True)
class Block:
    """A block; its last operation is the terminator."""

    arguments: list[int]
    ops: list[Op]


class LocalValues:
    """The functions of a module.

    Args:
        module: a local module, or its operation.
        opens: whether operations of a name have regions that are executed as part of the program, such as loops. The
            regions of others define the computation of an element.

    Attributes:
        arrays: the operations by number.
        tensors: the memory of each value.
        functions: the blocks of functions, by name.
        constant_bytes: the bytes of the constants, without splats.

    Raises:
        PassFailure: a tensor has no static shape.
    """

    def __init__(self, module: Any, opens: Callable[[str], bool]) -> None:
        self.arrays = ModuleArrays(module)
        self.tensors: dict[int, Tensor] = {}
        self.functions: dict[str, Block] = {}
        self._known: dict[Any, Tensor] = {}
        self.constant_bytes = 0
        signatures = [
            Signature(number, op.name, tuple(self._tensor(one.type, op) for one in op.results), op)
            for number, op in enumerate(self.arrays.representatives())
        ]
        self._read(signatures, [one.name == "func.func" or opens(one.name) for one in signatures])

    def _read(self, signatures: list[Signature], opens: list[bool]) -> None:
        arrays, tensors = self.arrays, self.tensors
        regions: dict[int, list[Block]] = {}
        inside: dict[int, Op | None] = {}
        by_number: dict[int, Op] = {}
        for number, (parent, kind) in enumerate(zip(arrays.parents, arrays.signatures, strict=True)):
            signature = signatures[kind]
            around = inside.get(parent)
            if around is not None:
                # An operation of a region that is not executed as part of the program.
                inside[number] = around
                around.captured += [one for one in arrays.operands(number) if one in tensors]
                continue
            results = arrays.results(number)
            op = Op(number, signature, arrays.operands(number), results, [], [])
            tensors.update(zip(results, signature.results, strict=True))
            if signature.name in _CONSTANTS:
                self.constant_bytes += _constant_bytes(signature)
            if opens[kind]:
                host = arrays.operation(number)
                regions[number] = op.blocks = self._blocks(host)
                if signature.name == "func.func" and op.blocks:
                    self.functions[host.attributes["sym_name"].value] = op.blocks[0]
            elif signature.name != "builtin.module":
                inside[number] = op
            by_number[number] = op
            blocks = regions.get(parent)
            if blocks:
                block = blocks[0]
                block.ops.append(op)
                if len(blocks) > 1 and signature.name in _TERMINATORS:
                    blocks.append(blocks.pop(0))

    def _blocks(self, host: Any) -> list[Block]:
        found = []
        for region in host.regions:
            if len(region.blocks) > 1:
                raise PassFailure("control flow is by branches", host)
            for block in region.blocks:
                numbers = []
                for value in block.arguments:
                    number = self.arrays.number_of(value)
                    if number is not None:
                        numbers.append(number)
                        self.tensors[number] = self._tensor(value.type, host)
                found.append(Block(numbers, []))
        return found

    def _tensor(self, type_: Any, op: Any) -> Tensor:
        known = self._known.get(type_)
        if known is None:
            known = self._known[type_] = _tensor_of(type_, op)
        return known


_CONSTANTS = frozenset({"arith.constant", "stablehlo.constant", "tosa.const"})
_TERMINATORS = frozenset({"stablehlo.return", "scf.yield", "scf.condition", "scf.forall.in_parallel", "affine.yield"})


def _tensor_of(type_: Any, op: Any) -> Tensor:
    if not isinstance(type_, ir.RankedTensorType):
        return Tensor(0, (), 0, "")
    if not type_.has_static_shape:
        raise PassFailure("a tensor is of dynamic shape: see shard-make-static", op)
    size = element_size(type_) or 0
    shape = tuple(type_.shape)
    return Tensor(size * prod(shape), shape, size, str(type_.element_type))


def _constant_bytes(signature: Signature) -> int:
    """Returns the bytes of a constant; 0 for a splat."""
    attributes = signature.op.attributes
    value = attributes.get("value") or attributes.get("values")
    if isinstance(value, ir.DenseElementsAttr) and value.is_splat:
        return 0
    return sum(one.bytes for one in signature.results)
