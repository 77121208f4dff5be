// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The vocabulary that ODS files take from upstream's `mlir/...`, for where upstream's files are not at hand.
// Names and summaries agree with upstream, as `.td` files and diagnostics rely on them; what is only of use to a
// generator of C++ is left out, or there without effect so that it can be set.

include "constraints.td"
include "types.td"
include "attributes.td"
include "traits.td"
include "interfaces.td"
include "definitions.td"
include "enums.td"
