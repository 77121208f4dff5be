# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes before propagation, which convert every input language and form to the form that propagation reads.

`sdy_import_pipeline` has their order. `convert_shard_to_sdy` reads upstream's annotations; `calls`, `meshes` and
`add_data_flow_edges` have several small passes each. `sub_axis_families` and `axes_of_ops` are of `shard_unify_meshes`;
`merged_dims` has `shard_expand_merged_dims`. `batching_indices` is of `shard_batch_gathers` and
`sdy_explicit_gather_scatter_batching`. The gathers of `shard_extract_to_gather` are lowered again after
partitioning.
"""

# The passes of files that are not named for one; all others are in the file of their name.
PASSES = {
    "add_data_flow_edges": (
        "sdy-add-data-flow-edges",
        "sdy-add-func-data-flow-edges",
    ),
    "calls": (
        "sdy-flatten-call-graph",
        "sdy-import-func-calls",
        "sdy-pre-order-funcs",
        "sdy-propagate-sharding-from-func-to-call",
        "shard-inline-calls",
    ),
    "meshes": (
        "sdy-inline-meshes",
        "sdy-lift-inlined-meshes",
        "sdy-remove-size-one-axes",
    ),
    "shard_extract_to_gather": (
        "shard-extract-to-gather",
        "shard-gather-to-linalg",
    ),
}
