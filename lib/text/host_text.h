// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Text for the host, assembled from the pieces of a translation.
#pragma once

#include "text/pieces.h"
#include "text/source_map.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace mlir_shard {

// The host's text. Every piece of the user's text keeps its line and, if there is room, its column. So does a
// replacement that is not longer than the replaced text.
class HostText {
public:
  // The user's text must outlive this object; `prelude` precedes it.
  HostText(const Pieces &pieces, std::string_view prelude);

  // Returns the entire text; a zero byte follows it if one follows the user's text.
  std::string_view text() const { return isUserText ? user : std::string_view(out); }
  const SourceMap &positions() const { return map; }

private:
  // Returns the line and column of an offset, both counted from 1.
  Position position(std::size_t offset);
  void add(const Pieces::Piece &piece);
  void addInPlace(std::string_view text, std::size_t offset);
  void addGenerated(std::string_view text, std::size_t offset);

  std::string_view user;
  std::string out;
  SourceMap map;
  bool isUserText; // Whether the user's text is unchanged.
  unsigned line = 1;
  std::size_t column; // The column in the host's text, valid while `displaced` is set.
  bool displaced;
  // The offset that was looked up last, and the number and the start of its line.
  std::size_t knownOffset = 0, knownStart = 0;
  unsigned knownLine = 1;
};

} // namespace mlir_shard
