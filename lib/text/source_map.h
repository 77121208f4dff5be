// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A map from positions in the text that the host parsed to positions in the text that the user wrote.
#pragma once

#include <utility>
#include <vector>

namespace mlir_shard {

// A line and a column, both counted from 1.
using Position = std::pair<unsigned, unsigned>;

// The translation keeps lines, so a map is a list of columns from which on a line differs. From (line, hostColumn) on,
// up to the next entry of the line, a position moves by userColumn - hostColumn, or is mapped to userColumn if the text
// at the position was generated.
class SourceMap {
public:
  // Adds an entry. Entries must be added in the order of the text.
  void add(unsigned line, unsigned hostColumn, unsigned userColumn, bool moves);
  Position toUser(Position host) const;
  bool empty() const { return entries.empty(); }

private:
  struct Entry {
    unsigned line, hostColumn, userColumn;
    bool moves;
  };
  std::vector<Entry> entries;
};

} // namespace mlir_shard
