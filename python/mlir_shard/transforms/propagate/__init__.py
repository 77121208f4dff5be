# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes that decide the sharding of every tensor.

Read `pipelines`, then `propagation_passes`; `survey` finds the ops of a module that propagate, `read_module` makes a
`value_graph` of them, `phases` has the order of propagation over it, and `step` the step of one node. `cleanup` has the
passes that follow, and `propagation_record` the debugging information.
"""

# The passes in files with other names; every other pass is in the file of its name.
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
