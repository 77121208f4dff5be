# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of operators of torch that torch-mlir would lower wrongly, or not at all.

elementwise   functions of one or two elements
orders        maxima, medians, modes and cumulative operators
indexing      slices, diagonals, searches, and distances of all pairs
pools         max, average and adaptive pools
convolutions  gradients of convolutions, and transposed ones
scatters      operators that place or combine elements at indices
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch._decomp import get_decompositions
from torch.overrides import TorchFunctionMode

from mlir_shard.frontend.torch_operators.convolutions import CONVOLUTIONS
from mlir_shard.frontend.torch_operators.elementwise import ELEMENTWISE, WITH_NAN
from mlir_shard.frontend.torch_operators.indexing import INDEXING, multilabel_margin_loss
from mlir_shard.frontend.torch_operators.orders import ORDERS, SCANS
from mlir_shard.frontend.torch_operators.pools import POOLS
from mlir_shard.frontend.torch_operators.scatters import SCATTERS

_aten = torch.ops.aten
RESIZES = get_decompositions(
    [
        *(
            getattr(_aten, f"{name}{rank}d")
            for name in ("upsample_nearest", "_upsample_nearest_exact")
            for rank in (1, 2, 3)
        ),
        _aten.upsample_trilinear3d,
    ]
)
"""Resizes that torch-mlir does not lower, or wrongly if the result is smaller: to the first elements."""
_OF_TORCH = get_decompositions([_aten.hardsigmoid])


def decompositions(dialect: str) -> dict[Any, Callable[..., Any]]:
    """Returns the decompositions, besides those of torch-mlir, of programs in a dialect."""
    found = RESIZES | _OF_TORCH | ELEMENTWISE | ORDERS | INDEXING | POOLS | SCATTERS
    return found | CONVOLUTIONS if dialect == "stablehlo" else found | WITH_NAN | SCANS


class Functions(TorchFunctionMode):
    """A mode that replaces functions of torch which torch itself decomposes wrongly while it traces them."""

    _REPLACED: ClassVar[dict[Any, Callable[..., Any]]] = {
        # torch compares also the targets behind the first -1.
        torch.nn.functional.multilabel_margin_loss: multilabel_margin_loss,
    }

    def __torch_function__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        return self._REPLACED.get(func, func)(*args, **(kwargs or {}))
