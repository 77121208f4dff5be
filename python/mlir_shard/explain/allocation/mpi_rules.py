# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of the lowering to LLVM and MPI: fusion by `linalg`, and bufferization."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from mlir_shard import host
from mlir_shard.explain.allocation import xla_rules
from mlir_shard.explain.allocation.instructions import Computation, Emit, Instruction, Role, Traits, Value
from mlir_shard.explain.allocation.local_values import Op, Signature, Tensor
from mlir_shard.host import ir
from mlir_shard.ir.array_elements import elements
from mlir_shard.ir.op_names import op_names
from mlir_shard.ir.slice_numbers import SliceNumbers

_bindings = host.module("_mlir_libs._stablehlo")
_OPENED = frozenset(op_names("stablehlo", "case if while")) | {"scf.for", "scf.if", "scf.while"}
_VIEWS = frozenset(
    op_names("stablehlo", "optimization_barrier reshape")
    + op_names("tensor", "cast collapse_shape expand_shape reshape")
    + op_names("tosa", "reshape")
)
# Operations whose results are parts of tensors, which need not be contiguous in memory.
_STRIDED = frozenset({"shard.all_slice", "stablehlo.dynamic_slice", "stablehlo.slice", "tensor.extract_slice"})
_FLATTENING = frozenset({"stablehlo.reshape", "tensor.collapse_shape", "tensor.reshape", "tosa.reshape"})
_STRIDED_VIEW = Traits(Role.OPAQUE, is_view=True, is_folded=True)
_REORDERED_VIEW = Traits(Role.FUSIBLE, is_view=True, is_elementwise=True, is_folded=True)
_REORDERED = Traits(Role.FUSIBLE)
_COPY = Traits(Role.OPAQUE)
_COLLECTIVE = Traits(Role.OPAQUE, is_pure=False, is_collective=True)
_COMPUTED = Traits(Role.FUSIBLE, is_elementwise=True, is_folded=True)
_INDEXED = frozenset(op_names("stablehlo", "gather scatter"))
_INDEX_BYTES = 8
# The number of operands of a reduction: its input and its initial value.
_OF_A_REDUCTION = 2
_WINDOWED = frozenset(op_names("stablehlo", "convolution reduce_window"))
_CONTRACTIONS = frozenset(
    op_names("stablehlo", "dot dot_general") + op_names("linalg", "batch_matmul matmul") + ("tosa.matmul",)
)
# Operations that are folded into the reads of operands of a contraction.
_REINDEXED = frozenset({"linalg.broadcast", "stablehlo.broadcast_in_dim"})
_GENERIC = frozenset(op_names("linalg", "broadcast elementwise generic map transpose"))
_FUSIBLE = frozenset((*op_names("stablehlo", "broadcast_in_dim iota transpose"), *op_names("tosa", "tile transpose")))
_TAKES = frozenset(
    op_names("stablehlo", "reduce")
    + op_names("tosa", "reduce_max reduce_min reduce_sum reduce_prod reduce_all reduce_any")
)
_CONSTANTS = frozenset({"stablehlo.constant", "arith.constant", "tosa.const", "tensor.empty", "linalg.fill"})
_ELEMENTWISE_DIALECTS = ("arith.", "math.", "tosa.", "chlo.")
_NOT_ELEMENTWISE = frozenset(
    op_names(
        "tosa",
        "argmax avg_pool2d concat conv2d conv3d depthwise_conv2d gather matmul max_pool2d pad reduce_max reduce_min "
        "reduce_sum reduce_prod reduce_all reduce_any reshape reverse scatter slice tile transpose table",
    )
    + op_names("chlo", "top_k")
)
_ONE = "one"
_UPDATES = frozenset(op_names("stablehlo", "dynamic_update_slice scatter sort"))
# Operations whose inserted value is the operand before the destination.
_INSERTED = frozenset(op_names("tensor", "insert insert_slice"))
_INSERTION = Traits(Role.OPAQUE, updates=1, fills=True)


class MpiRules:
    """The rules of the lowering to MPI."""

    is_breadth_first = False
    is_in_place = False
    copies_parameters = False
    pointer_bytes = 0

    def opens(self, name: str) -> bool:
        """Implements `Rules.opens`."""
        return name in _OPENED

    def traits(self, signature: Signature) -> Traits:
        """Implements `Rules.traits`."""
        name = signature.name
        if name in _CONSTANTS:
            return Traits(Role.CONSTANT)
        is_collective = name in xla_rules.COLLECTIVES or (name.startswith("shard.") and name not in _VIEWS)
        is_elementwise = (
            name in xla_rules.ELEMENTWISE
            or name in _GENERIC
            or (name.startswith(_ELEMENTWISE_DIALECTS) and name not in _NOT_ELEMENTWISE)
        )
        if name == "linalg.generic" and "reduction" in str(signature.op.attributes["iterator_types"]):
            return Traits(Role.OPAQUE)
        return Traits(
            Role.FUSIBLE if is_elementwise or name in _FUSIBLE else Role.OPAQUE,
            is_elementwise=is_elementwise,
            is_folded=is_elementwise or name == "stablehlo.broadcast_in_dim",
            is_pure=not is_collective,
            is_collective=is_collective,
            updates=len(signature.results) if name in _UPDATES else 0,
        )

    def expand(self, op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value] | None:
        """Implements `Rules.expand`: a view becomes its operand, or a strided view of the operand."""
        name = op.name
        if name == "stablehlo.broadcast_in_dim" and _is_one(operands[0]):
            return emit(_ONE, Traits(Role.CONSTANT), [], op.signature.results)
        if name == "stablehlo.multiply" and any(map(_is_one, operands)):
            return operands[1:] if _is_one(operands[0]) else operands[:1]
        if name in _WINDOWED and len(op.results) == 1:
            return _windowed(op, operands, tensors, emit)
        if name in _INSERTED:
            given = [operands[1], operands[0], *operands[2:]]
            return emit(name, _INSERTION, given, op.signature.results, op.signature.number)
        if name == "shard.all_gather" and not _is_outermost(op, "gather_axis"):
            return _gathered(op, operands, emit)
        if name in _INDEXED:
            return _indexed(op, operands, emit)
        if name == "stablehlo.transpose" and _keeps_order(op):
            return emit(name, _REORDERED_VIEW, operands, op.signature.results, op.signature.number)
        if name in _STRIDED:
            (result,) = op.signature.results
            return emit(name, _STRIDED_VIEW, operands[:1], [result], (op.signature.number, *map(id, operands)))
        if name in _VIEWS:
            viewed = operands[0].definer
            is_flattened = name in _FLATTENING and viewed.traits is _STRIDED_VIEW
            if is_flattened and not _is_contiguous(viewed.results[0].tensor, viewed.operands[0].tensor):
                return emit("copy", _COPY, operands[:1], op.signature.results)
            return operands
        if len(operands) != 1:
            return None
        same = name in ("stablehlo.convert", "stablehlo.broadcast_in_dim") and tensors[0] == op.signature.results[0]
        return operands if same else None

    def calls(self, computation: Computation) -> Mapping[int, Instruction]:
        """Implements `FusionRules.calls`: libraries compute single operations."""
        return {}

    def takes(self, user: Instruction, producer: Instruction) -> bool:
        """Implements `FusionRules.takes`."""
        if user.name in _CONTRACTIONS:
            return _is_reindexed(producer) and _uses(user, producer) == 1 and _is_expanded(user.results[0])
        is_reduction = user.name in _TAKES or (user.name == "linalg.generic" and len(user.operands) == _OF_A_REDUCTION)
        if user.traits.role is not Role.FUSIBLE and not is_reduction:
            return False
        return _uses(user, producer) == 1 or (user.traits.is_elementwise and _has_same_reads(user, producer))

    def is_branching(self, one: Instruction) -> bool:
        """Implements `FusionRules.is_branching`."""
        return False

    def repeats(self, user: Instruction, producer: Instruction) -> bool:
        """Implements `FusionRules.repeats`: no instruction is too expensive."""
        return False

    def may_repeat(self, one: Instruction) -> bool:
        """Implements `FusionRules.may_repeat`: only broadcasts of constants and element indices are recomputed."""
        return one.name in _REINDEXED and _reads_nothing(one)

    def is_whole_or_not(self, one: Instruction) -> bool:
        """Implements `FusionRules.is_whole_or_not`."""
        return False

    def staging(self, one: Instruction) -> tuple[int, int]:
        """Implements `BufferRules.staging`: MPI sends and receives parts along the first dimension."""
        if one.op is None:
            return (0, 0)
        if one.name == "shard.reduce_scatter" and not _is_outermost(one.op, "scatter_dim"):
            return (one.operands[0].tensor.bytes, 0)
        return (0, 0)


def _is_expanded(value: Value) -> bool:
    """Returns whether dimensions are added to a value, at once or after elementwise operations.

    Its operation is then expanded to loops over these dimensions, and operands may be fused into the operation.
    """
    for user in value.users:
        if user.op is None:
            continue
        given = [one for one, read in zip(user.op.signature.op.operands, user.operands, strict=False) if read is value]
        if any(len(one.type.shape) > len(value.tensor.shape) for one in given):
            return True
        if user.traits.is_elementwise and any(map(_is_expanded, user.results)):
            return True
    return False


def _is_reindexed(producer: Instruction) -> bool:
    """Returns whether an instruction only reads its operand at other positions."""
    if producer.op is None or producer.name not in ("linalg.generic", "tosa.tile"):
        return producer.name in _REINDEXED
    if producer.name == "tosa.tile":
        tile = producer.op.signature.op
        sizes = zip(tile.operands[0].type.shape, tile.results[0].type.shape, strict=True)
        return all(before in (1, after) for before, after in sizes)
    (block,) = producer.op.signature.op.regions[0].blocks
    (*computed, end) = block.operations
    return not computed and end.operands[0] == block.arguments[0]


def _reads_nothing(one: Instruction) -> bool:
    """Returns whether an instruction depends only on constants and element indices."""
    pending, seen = [one], {id(one)}
    while pending:
        for value in pending.pop().operands:
            definer = value.definer
            if definer.traits.role is Role.CONSTANT or id(definer) in seen:
                continue
            if definer.traits.role is not Role.FUSIBLE:
                return False
            seen.add(id(definer))
            pending.append(definer)
    return True


def _uses(user: Instruction, producer: Instruction) -> int:
    return sum(value.definer is producer for value in user.operands)


def _has_same_reads(user: Instruction, producer: Instruction) -> bool:
    """Returns whether all reads of a producer by an instruction are of the same element, so that one read suffices."""
    if user.op is None or user.name != "linalg.generic":
        return True
    maps = user.op.signature.op.attributes["indexing_maps"]
    read = [str(of) for of, value in zip(maps, user.operands, strict=False) if value.definer is producer]
    return len(set(read)) == 1


def _keeps_order(transpose: Op) -> bool:
    """Returns whether a transpose moves only dimensions of size 1, so that its result is a view."""
    host = transpose.signature.op
    shape = host.operands[0].type.shape
    moved = [dim for dim in elements(host.attributes["permutation"]) if shape[dim] != 1]
    return moved == sorted(moved)


def _is_outermost(op: Op, name: str) -> bool:
    """Returns whether the dimensions before that of an attribute are of size 1, so that its parts are contiguous."""
    return all(size == 1 for size in op.signature.results[0].shape[: op.signature.op.attributes[name].value])


def _gathered(op: Op, operands: list[Value], emit: Emit) -> list[Value]:
    """Emits a gather that stores parts one after the other, and an instruction that reorders the elements."""
    (result,) = op.signature.results
    parts = emit(op.name, _COLLECTIVE, operands, [result], (op.number, "parts"))
    return emit("reordered", _REORDERED, parts, [result], op.signature.number)


def _indexed(op: Op, operands: list[Value], emit: Emit) -> list[Value] | None:
    """Emits a loop over elements, with indices of 64 bits and operands in memory; None for gathers without batching."""
    if op.name == "stablehlo.gather" and not SliceNumbers.of(op.signature.op).batching:
        return None
    count = len(op.results)
    given = operands[count].tensor
    wide = Tensor(given.elements * _INDEX_BYTES, given.shape, _INDEX_BYTES, "i64")
    indices = (
        operands[count : count + 1] if given.type == "i64" else emit("widened", _COMPUTED, [operands[count]], [wide])
    )
    updates = [
        emit("filled", _COPY, [], [one.tensor], id(one))[0]
        if one.definer.name in (*_REINDEXED, _ONE) and _is_constant(one)
        else one
        for one in operands[count + 1 :]
    ]
    return emit(
        op.name,
        Traits(Role.OPAQUE, updates=count if op.name in _UPDATES else 0),
        [*operands[:count], *indices, *updates],
        op.signature.results,
        op.signature.number,
    )


def _is_constant(value: Value) -> bool:
    return value.definer.traits.role is Role.CONSTANT


def _is_one(value: Value) -> bool:
    """Returns whether all elements of a value are 1, so that products with it are folded."""
    definer = value.definer
    if definer.name != "stablehlo.constant" or definer.op is None:
        return definer.name == _ONE
    elements = definer.op.signature.op.attributes["value"]
    return isinstance(elements, ir.DenseFPElementsAttr | ir.DenseIntElementsAttr) and (
        elements.is_splat and elements.get_splat_value().value == 1
    )


def _dilated_kernel(numbers: Any, attributes: Any, kernel: Tensor) -> Tensor:
    """Returns the kernel of a convolution, dilated by zeros unless the host dilates kernels in its order of
    dimensions."""
    rank = len(kernel.shape)
    spatial = list(range(1, rank - 1))
    is_usual = (
        (numbers.input_batch_dimension, numbers.input_feature_dimension) == (0, rank - 1)
        and (numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension) == (rank - 2, rank - 1)
        and (numbers.output_batch_dimension, numbers.output_feature_dimension) == (0, rank - 1)
        and list(numbers.input_spatial_dimensions) == spatial == list(numbers.output_spatial_dimensions)
    )
    if is_usual or "rhs_dilation" not in attributes:
        return kernel
    shape = list(kernel.shape)
    for axis, by in zip(numbers.kernel_spatial_dimensions, attributes["rhs_dilation"], strict=True):
        shape[axis] = (shape[axis] - 1) * by + 1
    return Tensor(kernel.element * prod(shape), tuple(shape), kernel.element, kernel.type)


def _windowed(op: Op, operands: list[Value], tensors: Sequence[Tensor], emit: Emit) -> list[Value]:
    """Emits a windowed operation on its first operand with padding and dilation, which other operations may share."""
    attributes = op.signature.op.attributes
    given = tensors[0]
    edges = elements(attributes["padding"]) if "padding" in attributes else []
    if op.name == "stablehlo.convolution":
        numbers = _bindings.ConvDimensionNumbers(attributes["dimension_numbers"])
        axes, dilation = list(numbers.input_spatial_dimensions), "lhs_dilation"
        kernel = _dilated_kernel(numbers, attributes, tensors[1])
        if kernel != tensors[1]:
            operands = [operands[0], *emit("dilated", _COPY, operands[1:2], [kernel])]
    else:
        axes, dilation = list(range(len(given.shape))), "base_dilations"
    dilations = elements(attributes[dilation]) if dilation in attributes else []
    shape = list(given.shape)
    for position, axis in enumerate(axes):
        if dilations:
            shape[axis] = (shape[axis] - 1) * dilations[position] + 1
        if edges:
            shape[axis] += edges[2 * position] + edges[2 * position + 1]
    if tuple(shape) != given.shape:
        padded = Tensor(given.element * prod(shape), tuple(shape), given.element, given.type)
        operands = [*emit("pad", _COPY, operands[:1], [padded], (*edges, *dilations)), *operands[1:]]
    return emit(op.name, _COPY, operands, op.signature.results, op.signature.number)


def _is_contiguous(part: Tensor, whole: Tensor) -> bool:
    """Returns whether a part is contiguous: of its dimensions of several elements, only the first is cut."""
    sizes = list(zip(part.shape, whole.shape, strict=False))
    while sizes and sizes[0][0] == 1:
        sizes.pop(0)
    return all(of == among for of, among in sizes[1:])
