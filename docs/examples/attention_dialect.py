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
