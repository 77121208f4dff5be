// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/host_text.h"

#include <cstring>

namespace mlir_shard {

HostText::HostText(std::string_view user, std::string_view prelude)
    : user(user), out(prelude), isUserText(prelude.empty()), column(prelude.size() + 1), displaced(!prelude.empty()) {
  if (!prelude.empty())
    map.add(1, 1, 1, false);
}

Position HostText::position(std::size_t offset) {
  if (offset < knownOffset) {
    knownOffset = knownStart = 0;
    knownLine = 1;
  }
  while (const void *newline = std::memchr(user.data() + knownOffset, '\n', offset - knownOffset)) {
    knownOffset = knownStart = static_cast<const char *>(newline) - user.data() + 1;
    ++knownLine;
  }
  knownOffset = offset;
  return {knownLine, static_cast<unsigned>(offset - knownStart + 1)};
}

void HostText::addUser(std::size_t start, std::size_t end) {
  if (start < end)
    add(user.substr(start, end - start), start);
}

void HostText::addReplaced(std::string_view text, std::size_t offset) { add(text, offset); }

void HostText::addGenerated(std::string_view text, std::size_t offset) {
  isUserText = false;
  const auto [userLine, userColumn] = position(offset);
  if (!displaced) {
    line = userLine;
    column = userColumn;
  }
  map.add(line, static_cast<unsigned>(column), userColumn, false);
  out += text;
  column += text.size();
  displaced = true;
}

void HostText::add(std::string_view text, std::size_t offset) {
  if (isUserText || out.capacity() < user.size()) {
    isUserText = false;
    // Aliases are as long as what they stand for, and operations have about the length that they had.
    out.reserve(out.size() + user.size() + user.size() / 8);
  }
  if (displaced) {
    const auto [userLine, userColumn] = position(offset);
    if (userLine > line) {
      out.append(userLine - line, '\n');
      column = 1;
    }
    if (column <= userColumn) {
      out.append(userColumn - column, ' ');
      column = userColumn;
    }
    if (column > userColumn || userLine == line)
      map.add(userLine, static_cast<unsigned>(column), userColumn, true);
    line = userLine;
    if (column == userColumn || text.find('\n') != std::string_view::npos)
      displaced = false;
    else
      column += text.size();
  }
  out += text;
}

} // namespace mlir_shard
