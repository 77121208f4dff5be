// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The definitions that ODS files include from upstream's `mlir/...`, if upstream's files are not available.
// Names and summaries agree with upstream, because `.td` files and diagnostics depend on them; definitions for
// generators of C++ are left out, or have no effect and only allow a value to be set.

include "constraints.td"
include "types.td"
include "attributes.td"
include "traits.td"
include "interfaces.td"
include "definitions.td"
include "enums.td"
