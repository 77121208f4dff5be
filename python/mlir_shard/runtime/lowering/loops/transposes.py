# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transposition of tiles in vector registers.

The rows of a tile are loaded as vectors, exchanged in log2(n) rounds, and stored (J. O. Eklundh, "A Fast Computer
Method for Matrix Transposing", 1972). Each line of the cache is loaded and stored once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir_shard import host
from mlir_shard.host import ir

_vector = host.dialect("vector")
_LARGEST = 16
_BYTES_OF_ELEMENTS = (1, 2, 4, 8)


def rows_of_tile(element_type: Any, vector_bytes: int) -> int | None:
    """Returns the number of rows and columns of a tile for an element type; None if vectors cannot hold it."""
    if not isinstance(element_type, (ir.FloatType, ir.IntegerType)) or element_type.width % 8:
        return None
    size = element_type.width // 8
    return min(_LARGEST, vector_bytes // size) if size in _BYTES_OF_ELEMENTS else None


def transpose_tile(source: Any, target: Any, rows: Sequence[Sequence[Any]], columns: Sequence[Sequence[Any]]) -> None:
    """Emits the transposition of a square tile from one memory to another.

    Args:
        rows: the position of each row of the tile in `source`, whose last dimension must be contiguous.
        columns: the position of each row of the transposed tile in `target`.
    """
    count, element_type = len(rows), source.type.element_type
    type_ = ir.VectorType.get([count], element_type)
    # Vector registers support integers of every width.
    integers = ir.VectorType.get([count], ir.IntegerType.get_signless(element_type.width))
    values = [_as(integers, _vector.LoadOp(type_, source, list(place)).result) for place in rows]
    distance = 1
    while distance < count:
        for row in range(count):
            if not row & distance:
                first, second = values[row], values[row + distance]
                values[row] = _exchanged(first, second, distance, 0)
                values[row + distance] = _exchanged(first, second, distance, distance)
        distance *= 2
    for value, place in zip(values, columns, strict=True):
        _vector.StoreOp(_as(type_, value), target, list(place))


def _as(type_: Any, vector: Any) -> Any:
    return vector if vector.type == type_ else _vector.BitCastOp(type_, vector).result


def _exchanged(first: Any, second: Any, distance: int, shift: int) -> Any:
    """Returns every other group of `distance` elements of the first vector, interleaved with those of the second."""
    (count,) = first.type.shape
    taken = [place + shift - distance + count if place & distance else place + shift for place in range(count)]
    return _vector.ShuffleOp(first, second, taken).result
