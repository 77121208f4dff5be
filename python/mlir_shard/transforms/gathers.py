# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Remarks on tensors that are gathered because no rule, plan or lowering could avoid it."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from mlir_shard.host import ir
from mlir_shard.ir.values import element_size
from mlir_shard.passes.diagnostic import remark
from mlir_shard.passes.options import option
from mlir_shard.sharding import Mesh, TensorSharding

DEFAULT_BOUND = 1 << 20
"""The default for the bytes that a device may receive for an op without a remark."""


def remarks_above() -> Any:
    """Returns the option `remarks-above` of a pass or pipeline."""
    return option(
        DEFAULT_BOUND,
        "the number of bytes that a device may receive for gathered operands of an op before a remark is emitted; "
        "none disables remarks",
    )


def bound_text(bound: int | None) -> int | str:
    """Returns the value of `remarks-above` in the form in which a pipeline passes it to a step."""
    return "none" if bound is None else bound


class Gathers:
    """The gathers of one run of a pass. Those for which a device receives more bytes than `bound` become remarks."""

    def __init__(self, bound: int | None) -> None:
        self._bound = bound
        self._count = 0
        self._locations: dict[tuple[str, str, int], list[Any]] = {}

    def __len__(self) -> int:
        return self._count

    def add(self, op: Any, reason: str, received: int) -> None:
        """Records that a device receives this many bytes for `op`. The op may be erased afterwards."""
        self._count += 1
        if self._bound is not None and received > self._bound:
            self._locations.setdefault((op.name, reason, received), []).append(op.location)

    def remark(self) -> None:
        """Emits one remark for all ops that agree in name, reason and bytes, at the first of them."""
        for (name, reason, received), locations in self._locations.items():
            count = "" if len(locations) == 1 else f" ({len(locations)} ops, the first one here)"
            remark(f"'{name}' op {reason}; a device receives {received:,} bytes{count}", locations[0])


def shard_bytes(type_: Any, sharding: TensorSharding | None, mesh: Mesh | None) -> int:
    """Returns the bytes of the largest shard of a tensor type, 0 for other types. A dynamic dimension counts as 1."""
    if not isinstance(type_, ir.RankedTensorType):
        return 0
    sizes = [1 if type_.is_dynamic_dim(dim) else type_.get_dim_size(dim) for dim in range(type_.rank)]
    if sharding is not None and mesh is not None and not mesh.is_maximal:
        sizes = [-(-size // dim.sharded_size(mesh)) for size, dim in zip(sizes, sharding.dim_shardings, strict=True)]
    return prod(sizes) * element_bytes(type_)


def bytes_of(types: Iterable[Any]) -> int:
    """Returns the total bytes of tensors of these types."""
    return sum(shard_bytes(one, None, None) for one in types)


def element_bytes(type_: Any) -> int:
    """Returns the bytes of an element of a tensor type, 8 if its element type has no size."""
    return element_size(type_) or 8
