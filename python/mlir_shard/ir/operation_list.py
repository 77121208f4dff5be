# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations as native code returns them: those that are only passed back to it need no `ir.Operation`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from mlir_shard.host import ir


class OperationList(Sequence[Any]):
    """Operations by their capsules. The `ir.Operation` of a capsule is made at each access."""

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
    """Returns the capsules of operations, for native code."""
    return ops.capsules if isinstance(ops, OperationList) else [op.operation._CAPIPtr for op in ops]
