# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An example of a plugin: a pass that says how many reshards each function holds, and can refuse too many.

shard-opt --load count_reshards.py --count-reshards=limit=2 program.mlir
"""

from __future__ import annotations

from mlir_shard import Pass, PassFailure, option, register
from mlir_shard.host import ir


@register
class CountReshards(Pass):
    """Notes the number of `sdy.reshard` operations of a function in its attribute `reshards`."""

    name = "count-reshards"
    anchor = "func.func"
    summary = "Count the reshards of each function"

    limit: int | None = option(None, "fail where a function holds more than this")

    def run(self, op: ir.Operation) -> None:
        reshards = []

        def visit(one: ir.Operation) -> ir.WalkResult:
            if one.name == "sdy.reshard":
                reshards.append(one)
            return ir.WalkResult.ADVANCE

        op.walk(visit)
        if self.limit is not None and len(reshards) > self.limit:
            raise PassFailure(
                f"function holds {len(reshards)} reshards; at most {self.limit} are allowed",
                notes=[("one reshard too many", reshards[self.limit])],
            )
        op.attributes["reshards"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(reshards))
