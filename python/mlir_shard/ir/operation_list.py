# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations as native code hands them over: what only goes back to it need not become `ir.Operation`s."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from mlir_shard.host import ir


class OperationList(Sequence[Any]):
    """Operations by their capsules; each becomes an `ir.Operation` where it is asked for."""

    def __init__(self, capsules: Sequence[Any]) -> None:
        self.capsules = capsules

    def __len__(self) -> int:
        return len(self.capsules)

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> OperationList: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return OperationList(self.capsules[index])
        return ir.Operation._CAPICreate(self.capsules[index])


def capsules_of(ops: Sequence[Any]) -> Sequence[Any]:
    """The capsules of operations, for native code."""
    return ops.capsules if isinstance(ops, OperationList) else [op.operation._CAPIPtr for op in ops]
