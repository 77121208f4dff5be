# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Partition rules whose results differ between isomorphic ops: one is declared so, the other is registered as pure."""

from mlir_shard import interfaces
from mlir_shard.host import ir

interfaces.sharding_rule("my.honest", text="i -> i")
interfaces.sharding_rule("my.impure", text="i -> i")


def _numbered(op: ir.Operation, blocks: interfaces.Blocks) -> None:
    op.results[0].set_type(blocks.result_types[0])
    block = [one.operation for one in op.block.operations]
    op.attributes["position"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), block.index(op.operation))


interfaces.partition_rule("my.honest")(_numbered)
interfaces.partition_rule("my.impure", pure=True)(_numbered)
