// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/source_map.h"

#include <algorithm>

namespace mlir_shard {

void SourceMap::add(unsigned line, unsigned hostColumn, unsigned userColumn, bool moves) {
  entries.push_back({line, hostColumn, userColumn, moves});
}

Position SourceMap::toUser(Position host) const {
  auto after = std::upper_bound(entries.begin(), entries.end(), host, [](const Position &position, const Entry &entry) {
    return position < Position(entry.line, entry.hostColumn);
  });
  if (after == entries.begin())
    return host;
  const Entry &entry = *std::prev(after);
  if (entry.line != host.first)
    return host;
  return {host.first, entry.userColumn + (entry.moves ? host.second - entry.hostColumn : 0)};
}

} // namespace mlir_shard
