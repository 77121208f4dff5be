# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The direct exchange: in each round a device sends a tile to one device, or none, and receives one, or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlir_shard.deferred import numpy as np
from mlir_shard.ir import shard
from mlir_shard.resharding.tensor_layout import TensorLayout
from mlir_shard.resharding.tile_rounds import NO_DEVICE, TileRound, as_vector, tile_rounds

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class TileForms:
    """The operations of a dialect on local tensors, built at the current insertion point.

    Starts are numbers, or entries of a `table` by device. `send` returns the tile that the device receives in a round,
    or any tile if it receives none; `cut` returns the first elements of each dimension.
    """

    zeros: Callable[[Any], Any]
    reshape: Callable[[Any, Sequence[int]], Any]
    cut: Callable[[Any, Sequence[int]], Any]
    extract: Callable[[Any, Sequence[Any], Sequence[int]], Any]
    insert: Callable[[Any, Any, Sequence[Any]], Any]
    table: Callable[[npt.NDArray[np.int64]], Any]
    send: Callable[[Any, TileRound], Any]


def exchange(
    value: Any, source: TensorLayout, target: TensorLayout, local_shape: Sequence[int], devices: int, forms: TileForms
) -> Any:
    """Returns the local tensor after a direct exchange, with zeros beyond the global tensor.

    Args:
        value: the local tensor before it.
        source, target: layouts of the global tensor.
        local_shape: the shape of the local tensor after it.
        devices: the number of devices of the program.
    """
    if not source.rank:
        vector = exchange(forms.reshape(value, [1]), as_vector(source), as_vector(target), [1], devices, forms)
        return forms.reshape(vector, [])
    rounds = tile_rounds(source, target, devices)
    # A device that gets no tile in a round writes behind its local tensor, so that no round depends on the device.
    spare = max((one.shape[0] for one in rounds if (one.senders == NO_DEVICE).any()), default=0)
    into = forms.zeros(shard.resized(value.type, [local_shape[0] + spare, *local_shape[1:]]))
    for one in rounds:
        tile = forms.extract(value, _starts(one.source_starts, forms), one.shape)
        if not one.is_copy:
            tile = forms.send(tile, one)
        target_starts = one.target_starts.copy()
        target_starts[one.senders == NO_DEVICE, 0] = local_shape[0]
        into = forms.insert(tile, into, _starts(target_starts, forms))
    return forms.cut(into, local_shape)


def _starts(by_device: npt.NDArray[np.int64], forms: TileForms) -> list[Any]:
    """Returns the start of this device's tile in each dimension."""
    return [
        int(of_dim[0]) if (of_dim == of_dim[0]).all() else forms.table(of_dim)
        for of_dim in np.ascontiguousarray(by_device.T)
    ]
