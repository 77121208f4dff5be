# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An example of a dialect that is defined in Python and takes part in sharding.

shard-opt --load attention_dialect.py --sdy-propagation-pipeline program.mlir
"""

from collections.abc import Iterator, Sequence
from typing import Any

from mlir_shard import interfaces
from mlir_shard.dialects import sdy
from mlir_shard.host import dialect, ir
from mlir_shard.ir.editing import clone_with
from mlir_shard.sharding import TensorShardingPerValue

ext = dialect("ext")
Tensor = ir.RankedTensorType


@interfaces.register_dialect
class Attention(ext.Dialect, name="attn"):
    """Attention on tensors of batch, head, sequence and feature."""


class Constant(Attention.Operation, name="constant", traits=[ext.Pure]):
    value: Any
    result: ext.Result[Tensor]


class Scores(Attention.Operation, name="scores", traits=[ext.Pure]):
    query: ext.Operand[Tensor]
    key: ext.Operand[Tensor]
    result: ext.Result[Tensor]


class Softmax(Attention.Operation, name="softmax", traits=[ext.Pure]):
    scores: ext.Operand[Tensor]
    result: ext.Result[Tensor]


class Attend(Attention.Operation, name="attend", traits=[ext.Pure]):
    weights: ext.Operand[Tensor]
    value: ext.Operand[Tensor]
    result: ext.Result[Tensor]


class Mask(Attention.Operation, name="mask", traits=[ext.Pure]):
    scores: ext.Operand[Tensor]
    mask: ext.Operand[Tensor]
    result: ext.Result[Tensor]


class Layers(Attention.Operation, name="layers"):
    init: ext.Operand[Tensor]
    result: ext.Result[Tensor]
    body: ext.Region


class Yield(Attention.Operation, name="yield", traits=[ir.IsTerminatorTrait]):
    value: ext.Operand[Tensor]


interfaces.sharding_rule("attn.scores", text="b h q d, b h k d -> b h q k")
interfaces.sharding_rule("attn.attend", text="b h q k, b h k d -> b h q d")
interfaces.reduces_with("sum", "attn.scores", "attn.attend")


@interfaces.sharding_rule("attn.softmax")
def softmax(op: ir.Operation, options: interfaces.RuleOptions) -> interfaces.OpShardingRule:
    """Every dimension passes through but the last one, which a device needs whole."""
    *outer, keys = op.results[0].type.shape
    builder = interfaces.RuleBuilder.for_op(op).add_pointwise(outer)
    return builder.add_common_factor(len(outer), keys, interfaces.FactorType.NEED_REPLICATION).build()


interfaces.elementwise("attn.mask")
interfaces.constant_op("attn.constant")
interfaces.op_priorities("attn.attend", "attn.scores")

BODY = "attn.body_shardings"


def body_shardings(op: ir.Operation) -> Sequence[interfaces.TensorSharding | None]:
    return sdy.value(op.attributes[BODY]).shardings if BODY in op.attributes else [None]


def set_body_shardings(op: ir.Operation, shardings: Sequence[interfaces.TensorSharding]) -> None:
    op.attributes[BODY] = sdy.attribute(TensorShardingPerValue(tuple(shardings)), op.context)


@interfaces.data_flow_edges(
    "attn.layers", get_argument_shardings=body_shardings, set_argument_shardings=set_body_shardings
)
def layers(op: ir.Operation) -> Iterator[interfaces.DataFlowEdge]:
    """What a layer gets is what comes in or what the layer before gave; the result is what the last one gave."""
    block = op.regions[0].blocks[0]
    given = block.operations[len(block.operations) - 1].operands[0]
    yield interfaces.DataFlowEdge(block.arguments[0], (op.operands[0], given))
    yield interfaces.DataFlowEdge(op.results[0], (given,))


@interfaces.partition_rule("attn.constant", allows_uneven=True, pure=True)
def local_constant(op: ir.Operation, blocks: interfaces.Blocks) -> bool:
    """A constant of the same number everywhere. Of another one, each device slices its shard."""
    value = op.attributes["value"]
    if value.is_splat:
        op.results[0].set_type(blocks.result_types[0])
        op.attributes["value"] = ir.DenseElementsAttr.get_splat(blocks.result_types[0], value.get_splat_value())
    return bool(value.is_splat)


def contracted(op: ir.Operation, query_dim: int, key_dim: int) -> ir.Operation:
    """The product of the operands of an op for each batch and head, summed along a dimension of each of them."""
    numbers = ir.Attribute.parse(
        "#stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], "
        f"lhs_contracting_dimensions = [{query_dim}], rhs_contracting_dimensions = [{key_dim}]>"
    )
    types = [result.type for result in op.results]
    return ir.Operation.create("stablehlo.dot_general", types, list(op.operands), {"dot_dimension_numbers": numbers})


@interfaces.lowering("attn.scores")
def lower_scores(op: ir.Operation) -> ir.Operation:
    return contracted(op, 3, 3)


@interfaces.lowering("attn.attend")
def lower_attend(op: ir.Operation) -> ir.Operation:
    return contracted(op, 3, 2)


@interfaces.lowering("attn.mask")
def lower_mask(op: ir.Operation) -> ir.Operation:
    return ir.Operation.create("stablehlo.add", [op.results[0].type], list(op.operands))


@interfaces.lowering("attn.constant")
def lower_constant(op: ir.Operation) -> ir.Operation:
    attributes = {"value": op.attributes["value"]}
    return ir.Operation.create("stablehlo.constant", [op.results[0].type], attributes=attributes)


@interfaces.lowering("attn.softmax")
def lower_softmax(op: ir.Operation) -> str:
    """Exponentials over their sum, after the greatest score is subtracted."""
    scores = op.results[0].type
    batch, heads, queries, _ = scores.shape
    scalar, row = f"tensor<{scores.element_type}>", f"tensor<{batch}x{heads}x{queries}x{scores.element_type}>"
    return f"""
      func.func @softmax(%scores: {scores}) -> {scores} {{
        %least = stablehlo.constant dense<0xFF800000> : {scalar}
        %zero = stablehlo.constant dense<0.0> : {scalar}
        %greatest = stablehlo.reduce(%scores init: %least) applies stablehlo.maximum across dimensions = [3]
            : ({scores}, {scalar}) -> {row}
        %subtracted = stablehlo.broadcast_in_dim %greatest, dims = [0, 1, 2] : ({row}) -> {scores}
        %shifted = stablehlo.subtract %scores, %subtracted : {scores}
        %exponentials = stablehlo.exponential %shifted : {scores}
        %sum = stablehlo.reduce(%exponentials init: %zero) applies stablehlo.add across dimensions = [3]
            : ({scores}, {scalar}) -> {row}
        %divisor = stablehlo.broadcast_in_dim %sum, dims = [0, 1, 2] : ({row}) -> {scores}
        %weights = stablehlo.divide %exponentials, %divisor : {scores}
        return %weights : {scores}
      }}"""


@interfaces.lowering("attn.layers")
def lower_layers(op: ir.Operation) -> ir.Value:
    """The body as often as `attn.count` has it. Its ops are lowered afterwards."""
    block = op.regions[0].blocks[0]
    *body, last = block.operations
    value = op.operands[0]
    for _ in range(op.attributes["attn.count"].value):
        values = {block.arguments[0]: value}
        for inner in body:
            clone_with(inner, values)
        value = values[last.operands[0]]
    return value
