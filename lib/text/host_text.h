// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Text for the host, put together from the pieces of a translation.
#pragma once

#include "text/pieces.h"
#include "text/source_map.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace mlir_shard {

// Every piece of the user's text keeps its line and, where there is room, its column. So does a replacement that is not
// longer than the text it replaces.
class HostText {
public:
  // The user's text has to outlive this; `prelude` comes in front of it.
  HostText(const Pieces &pieces, std::string_view prelude);

  // The whole; a zero byte follows it if one follows the user's text.
  std::string_view text() const { return isUserText ? user : std::string_view(out); }
  const SourceMap &positions() const { return map; }

private:
  // The line and column of an offset, both from 1.
  Position position(std::size_t offset);
  void add(const Pieces::Piece &piece);
  void addInPlace(std::string_view text, std::size_t offset);
  void addGenerated(std::string_view text, std::size_t offset);

  std::string_view user;
  std::string out;
  SourceMap map;
  bool isUserText; // As it is.
  unsigned line = 1;
  std::size_t column; // Of the host's text, valid while `displaced`.
  bool displaced;
  // The line of an offset that was looked up last, and where it begins.
  std::size_t knownOffset = 0, knownStart = 0;
  unsigned knownLine = 1;
};

} // namespace mlir_shard
