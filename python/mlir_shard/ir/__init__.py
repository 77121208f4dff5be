# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helpers for the host's IR that do not depend on shardings.

`arrays` and `editing` read and change whole modules natively, `stablehlo` and `shard`
build operations, `replica_groups` reads the devices of collectives,
`array_elements` reads array attributes, `python_frames` finds call stacks in locations.
"""
