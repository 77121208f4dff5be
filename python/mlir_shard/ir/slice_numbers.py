# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dimension numbers of StableHLO's gather and scatter in one form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_shard import host

_bindings = host.module("_mlir_libs._stablehlo")
_FIELDS = {
    "stablehlo.gather": (
        "dimension_numbers",
        "GatherDimensionNumbers",
        "offset_dims collapsed_slice_dims operand_batching_dims start_indices_batching_dims start_index_map",
    ),
    "stablehlo.scatter": (
        "scatter_dimension_numbers",
        "ScatterDimensionNumbers",
        "update_window_dims inserted_window_dims input_batching_dims scatter_indices_batching_dims "
        "scattered_dims_to_operand_dims",
    ),
}


@dataclass(frozen=True, slots=True)
class SliceNumbers:
    """The correspondence of the dimensions of an operand, of indices into it and of slices.

    The slices are the result of a gather, the updates of a scatter.

    Attributes:
        window_dims: The dimensions of the slices that are dimensions of a single slice. They correspond to the
            operand's dimensions that are neither collapsed nor batching; all others correspond to the dimensions of the
            indices except `index_vector_dim`.
        collapsed: The operand's dimensions that slices do not have.
        batching: The operand's dimensions that correspond to the dimensions `index_batching` of the indices.
        index_map: The operand's dimension of each entry of an index vector.
    """

    window_dims: tuple[int, ...]
    collapsed: tuple[int, ...]
    batching: tuple[int, ...]
    index_batching: tuple[int, ...]
    index_map: tuple[int, ...]
    index_vector_dim: int

    @staticmethod
    def of(op: Any) -> SliceNumbers:
        """Reads the numbers of a gather or scatter."""
        attribute, kind, fields = _FIELDS[op.name]
        numbers = getattr(_bindings, kind)(op.attributes[attribute])
        read: Any = (*(tuple(getattr(numbers, name)) for name in fields.split()), numbers.index_vector_dim)
        return SliceNumbers(*read)

    def set_on(self, op: Any) -> None:
        """Sets the numbers of a gather or scatter."""
        attribute, kind, fields = _FIELDS[op.name]
        dims = (self.window_dims, self.collapsed, self.batching, self.index_batching, self.index_map)
        lists = dict(zip(fields.split(), map(list, dims), strict=True))
        op.attributes[attribute] = getattr(_bindings, kind).get(
            **lists, index_vector_dim=self.index_vector_dim, context=op.context
        )

    def sliced(self, rank: int) -> list[int]:
        """Returns the dimensions of an operand of this rank that slices have, in order."""
        return [dim for dim in range(rank) if dim not in (*self.collapsed, *self.batching)]
