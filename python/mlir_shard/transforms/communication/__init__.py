# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes on the collectives of a local program, which make them fewer or smaller.

`simplify` has the pipeline. `communication_reading` and `collective_forms` read collectives of both targets,
`device_uniformity` finds the values that are uniform across devices, `shard_communication_report` reports.
"""

# The passes of files that are not named for one; all others are in the file of their name.
PASSES = {
    "simplify": (
        "shard-drop-collectives",
        "shard-fold-empty-tensors",
        "shard-fold-uniform-collectives",
        "shard-join-collectives",
        "shard-optimize-communication",
        "shard-simplify-collectives",
    ),
}
