// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Scheduling of messages between pairs of devices in rounds, in each of which a device sends at most one message and
// receives at most one: an edge coloring of a bipartite graph (König 1916).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace mlir_shard {

// Returns the round of each message, which is a pair of a sender and a receiver. The pairs must be distinct. A message
// gets the first round that is free for both if that is less than `count`, the largest number of messages that one
// device sends or receives; `count` rounds are sufficient.
std::vector<std::int32_t> exchangeRounds(const std::vector<std::pair<std::int64_t, std::int64_t>> &messages, std::int32_t count);

} // namespace mlir_shard
