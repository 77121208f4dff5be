# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A pass on local programs that makes one rank fail, for tests of the effects on a run."""

from __future__ import annotations

import mlir_shard
from mlir_shard import host
from mlir_shard.host import ir

arith, cf, func = host.dialect("arith"), host.dialect("cf"), host.dialect("func")
scf, shard = host.dialect("scf"), host.dialect("shard")

CALLED = {
    "abort": ("abort", None),
    "segv": ("raise", 11),
    "kill": ("raise", 9),
    "exit": ("exit", 0),
    "hang": ("pause", None),
}


@mlir_shard.register
class FailOnRank(mlir_shard.Pass):
    """Inserts code at the beginning of each function that ends one rank, or blocks it for ever.

    `abort`, `segv`, `kill`, `exit` and `hang` call the C library, `assert` checks a false condition, `change` adds 1 to
    the first argument, and `symbol` calls, on all ranks, a function that does not exist.
    """

    name = "fail-on-rank"
    anchor = "builtin.module"
    summary = "Makes one rank fail"
    rank: int = mlir_shard.option(0, "which rank")
    how: str = mlir_shard.option("abort", "how it fails")

    def run(self, op: ir.Operation) -> None:
        body = op.regions[0].blocks[0]
        grid = next(one for one in body.operations if one.operation.name == "shard.grid").sym_name.value
        functions = [one for one in body.operations if one.operation.name == "func.func"]
        for function in functions:
            with ir.InsertionPoint.at_block_begin(function.operation.regions[0].blocks[0]):
                self._fail(op, grid, function)

    def _fail(self, module: ir.Operation, grid: str, function: ir.OpView) -> None:
        index = ir.IndexType.get()
        here = shard.ProcessLinearIndexOp(grid, results=[index]).result
        wanted = arith.constant(index, self.rank)
        if self.how == "assert":
            cf.assert_(arith.cmpi(arith.CmpIPredicate.ne, here, wanted), "this rank is not to be")
            return
        is_here = arith.cmpi(arith.CmpIPredicate.eq, here, wanted)
        if self.how == "change":
            self._change(function, is_here)
            return
        if self.how == "symbol":
            self._call(module, "there_is_no_such_function", None)
            return
        with ir.InsertionPoint(scf.IfOp(is_here).then_block):
            self._call(module, *CALLED[self.how])
            scf.yield_([])

    def _call(self, module: ir.Operation, name: str, argument: int | None) -> None:
        i32 = ir.IntegerType.get_signless(32)
        types = [] if argument is None else [i32]
        with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
            func.FuncOp(name, (types, []), visibility="private")
        func.CallOp([], name, [] if argument is None else [arith.constant(i32, argument)])

    def _change(self, function: ir.OpView, is_here: ir.Value) -> None:
        argument = function.arguments[0]
        type_ = argument.type.element_type
        amount = arith.select(is_here, arith.constant(type_, 1.0), arith.constant(type_, 0.0))
        added = host.dialect("tensor").splat(argument.type, amount, [])
        changed = arith.addf(argument, added)
        argument.replace_all_uses_except(changed, [changed.owner.operation])
