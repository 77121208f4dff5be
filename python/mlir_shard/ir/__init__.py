# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helpers over the host's IR that know no sharding.

`arrays` and `editing` read and change whole modules natively, `stablehlo` and `shard`
build operations, `replica_groups` reads the devices of collectives,
`array_elements` reads array attributes, `python_frames` knows call stacks in locations.
"""
