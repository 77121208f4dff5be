// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Messages between pairs of devices in rounds: in each a device sends to one other at most, and receives from one. That is
// to color the edges of a bipartite graph (König 1916).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace mlir_shard {

// The round of each message, a sender and a receiver, none twice: the first that is free for both, as far as that goes.
// `count` is the most messages that one device sends or receives, and as many rounds are enough.
std::vector<std::int32_t> exchangeRounds(const std::vector<std::pair<std::int64_t, std::int64_t>> &messages, std::int32_t count);

} // namespace mlir_shard
