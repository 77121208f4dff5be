# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes that decide the sharding of every tensor.

Read `pipelines`, then `propagation_passes`; `survey` finds the ops of a module that propagate, `read_module` makes a
`value_graph` of them, `phases` is the order in which it is propagated, and `step` is what one node does. `cleanup` has
the passes that follow, and `propagation_record` the debugging information.
"""

# The passes of files that are not named for one; all others are in the file of their name.
PASSES = {
    "calls": (
        "sdy-export-named-computations",
        "sdy-unflatten-call-graph",
    ),
    "cleanup": (
        "sdy-close-shardings",
        "sdy-constant-or-scalar-merger",
        "sdy-propagate-to-func-results",
        "sdy-remove-propagation-debug-info",
        "sdy-sink-data-flow-edges",
        "sdy-sink-func-data-flow-edges",
        "sdy-update-non-divisible-input-output-shardings",
    ),
    "pipelines": (
        "sdy-propagation-pipeline",
        "shard-propagate",
    ),
    "propagation_passes": (
        "sdy-aggressive-propagate",
        "sdy-basic-propagate",
        "sdy-op-priority-propagate",
        "sdy-user-priority-propagate",
    ),
    "sharding_rules": (
        "sdy-populate-op-sharding-rules",
        "sdy-report-unknown-ops",
    ),
}
