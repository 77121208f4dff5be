# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts that readers of ops share: attributes, types, constants and the keys of ops and regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from mlir_shard.check.kernel.kinds import KINDS, NotCertified, width
from mlir_shard.check.ops.tensors import Tensors, Value
from mlir_shard.host import ir

Reader = Callable[["Reading", Any, list[Value]], list[Value]]
READERS: dict[str, Reader] = {}
"""The function that reads each op, by name."""

# Prefixes of attributes that do not affect the result of an op.
_IGNORED = ("sdy.", "mhlo.", "mlir_shard.", "xla.", "jax.", "operandSegmentSizes", "resultSegmentSizes")
_DYNAMIC = -(2**63)


def reads(*names: str) -> Callable[[Reader], Reader]:
    """Returns a decorator that registers the reader of ops."""

    def register(reader: Reader) -> Reader:
        READERS.update(dict.fromkeys(names, reader))
        return reader

    return register


@dataclass(frozen=True)
class Shape:
    """The sizes of a shape that is a value of the program."""

    sizes: tuple[int, ...]
    shape = ()
    rank = 0


class Reading:
    """The state of reading one program.

    Attributes:
        tensors: the meaning of tensor ops.
        trusted: the assumptions without a lemma.
        environment: the values of the program so far.
        sent: the values sent and not yet received, with the destinations and the sending devices.
        active: whether each device takes the branch that is read.
        groups: the mesh axes of groups of devices and the senders of pairs, by their attributes.
        position_of: the position on the mesh of the device of each number.
        element: the element type of the first result of the op that is read.
    """

    def __init__(self, tensors: Tensors, name: str) -> None:
        self.tensors, self.name = tensors, name
        self.trusted: set[str] = set()
        self.environment: dict[Any, Value] = {}
        self.sent: list[tuple[Value, Any, Any]] = []
        self.active: Any = None
        self.groups: dict[Any, Any] = {}
        self.position_of: Any = None
        self.element = ""
        self._types: dict[Any, tuple[tuple[int, ...], str]] = {}

    def check_order(self) -> None:
        """Raises NotCertified unless the number of each device is its position on the mesh."""
        if any(at != position for at, position in enumerate(self.position_of)):
            raise NotCertified("the devices of the mesh are permuted", "groups of devices")

    def type_of(self, type_: Any) -> tuple[tuple[int, ...], str]:
        """Returns the shape and the element type of a type; a scalar has no dimensions."""
        found = self._types.get(type_)
        if found is None:
            if isinstance(type_, ir.RankedTensorType):
                if not type_.has_static_shape:
                    raise NotCertified("a tensor of dynamic shape")
                found = tuple(type_.shape), str(type_.element_type)
            else:
                found = (), str(type_)
            self._types[type_] = found
        return found

    def key(self, op: Any, without: Sequence[str] = ()) -> tuple[Any, ...]:
        """Returns the attributes of an op that affect its result."""
        return tuple(
            (name, attribute)
            for name, attribute in op.attributes.items()
            if name not in without
            and not name.startswith(_IGNORED)
            and not (name == "fastmath" and "none" in str(attribute))
        )

    def region_key(self, op: Any) -> tuple[Any, ...]:
        """Returns a key of the computation of the regions of an op, independent of the names of values."""
        numbers: dict[Any, Any] = {}

        def block_key(block: Any) -> tuple[Any, ...]:
            for argument in block.arguments:
                numbers[argument] = len(numbers)
            found: list[Any] = [tuple(argument.type for argument in block.arguments)]
            for one in block.operations:
                one = one.operation
                if one.name.endswith(".constant"):
                    # A constant has the same key inside and outside of the region.
                    numbers[one.results[0]] = self.constant(one.attributes["value"], one.results[0].type)
                    continue
                outer = [self.environment[operand] for operand in one.operands if operand not in numbers]
                if any(map(self.tensors.differs, outer)):
                    raise NotCertified("a region reads a value that differs between devices", "region")
                operands = tuple(
                    numbers[operand] if operand in numbers else self.environment[operand] for operand in one.operands
                )
                inner = tuple(block_key(inner) for region in one.regions for inner in region.blocks)
                for result in one.results:
                    numbers[result] = len(numbers)
                found.append((one.name, self.key(one), operands, tuple(result.type for result in one.results), inner))
            return tuple(found)

        return tuple(block_key(block) for region in op.regions for block in region.blocks)

    def constant(self, attribute: Any, type_: Any) -> Value:
        """Returns the value of a constant."""
        shape, element = self.type_of(type_)
        tensors = self.tensors
        if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
            attribute = attribute.get_splat_value()
        attribute = attribute.maybe_downcast() if hasattr(attribute, "maybe_downcast") else attribute
        dims = [(size,) for size in shape]
        if isinstance(attribute, ir.BoolAttr) or (isinstance(attribute, ir.IntegerAttr) and element == "i1"):
            return tensors.constant(element, str(bool(attribute.value)), shape)
        if isinstance(attribute, ir.IntegerAttr) and width(element):
            return tensors.index(element, (attribute.value, ()), dims)
        if isinstance(attribute, ir.FloatAttr):
            return tensors.constant(element, repr(attribute.value), shape)
        if isinstance(attribute, ir.DenseElementsAttr) and not attribute.is_splat:
            return tensors.leaf(("table", attribute), shape)
        if isinstance(attribute, ir.ArrayAttr) and all(isinstance(one, ir.FloatAttr) for one in attribute):
            parts = [ir.FloatAttr(one).value for one in attribute]
            return tensors.constant(element, repr(parts[0]) if not any(parts) else str(attribute), shape)
        if prod(shape) == 1 or isinstance(attribute, ir.DenseElementsAttr):
            return tensors.constant(element, str(attribute), shape)
        return tensors.leaf(("table", attribute), shape)


def numbers(attribute: Any) -> list[int]:
    """Returns the integers of an array attribute or of dense elements."""
    if isinstance(attribute, ir.ArrayAttr):
        return [ir.IntegerAttr(one).value for one in attribute]
    return list(attribute)


def numbers_of(op: Any, name: str) -> list[int]:
    """Returns the integers of an attribute of an op; empty if the op does not have it."""
    return numbers(op.attributes[name]) if name in op.attributes else []


def reduction_of(inside: Sequence[Any], accumulator: Any, yielded: Any) -> tuple[str, Any]:
    """Returns the kind of op that combines the accumulator of a body with a value, and the value; else "" and None."""
    last = next((op for op in inside if list(op.results) == [yielded]), None)
    uses = [operand for op in inside for operand in op.operands if operand == accumulator]
    if last is None or last.name not in KINDS or len(uses) != 1 or accumulator not in list(last.operands):
        return "", None
    return KINDS[last.name], next(one for one in last.operands if one != accumulator)


def reduction_kind(op: Any, region: int = 0, result: int = 0) -> str | None:
    """Returns the kind of op that combines the two arguments of a body for a result; None for other bodies."""
    block = op.regions[region].blocks[0]
    *inside, terminator = (one.operation for one in block.operations)
    count = len(terminator.operands)
    if len(block.arguments) != 2 * count:
        return None
    kind, other = reduction_of(inside, block.arguments[result], terminator.operands[result])
    return kind if kind and other == block.arguments[count + result] else None
