# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The definitions of the ops of dialects, by the ops on tensors of `tensors`.

Read `reading`, which they share, then `structured`, `stablehlo`, `places`, `tosa`, `upstream` and `collectives`. Each
module of a dialect registers the readers of its ops in `reading.READERS`, so that all of them are imported here.
"""

from mlir_shard.check.ops import collectives, places, stablehlo, tosa, upstream

__all__ = ["collectives", "places", "stablehlo", "tosa", "upstream"]
