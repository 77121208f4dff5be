// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Text for the host, put together from pieces of the user's text and from text of the translation's own.
#pragma once

#include "text/source_map.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace mlir_shard {

// Pieces come in the order of the user's text. Every piece of it is on its line and, where there is room, in its column.
class HostText {
public:
  // The user's text has to outlive this; `prelude` comes in front of it.
  HostText(std::string_view user, std::string_view prelude);

  // The user's text from one offset up to another.
  void addUser(std::size_t start, std::size_t end);
  // What takes the place of as many characters of the user's text on one line.
  void addReplaced(std::string_view text, std::size_t offset);
  // What stands for what begins at an offset of the user's text.
  void addGenerated(std::string_view text, std::size_t offset);

  // The whole; a zero byte follows it if one follows the user's text.
  std::string_view text() const { return isUserText ? user : std::string_view(out); }
  const SourceMap &positions() const { return map; }

private:
  // The line and column of an offset, both from 1.
  Position position(std::size_t offset);
  void add(std::string_view text, std::size_t offset);

  std::string_view user;
  std::string out;
  SourceMap map;
  bool isUserText; // Until something is added.
  unsigned line = 1;
  std::size_t column; // Of the host's text, valid while `displaced`.
  bool displaced;
  // The line of an offset that was looked up last, and where it begins.
  std::size_t knownOffset = 0, knownStart = 0;
  unsigned knownLine = 1;
};

} // namespace mlir_shard
