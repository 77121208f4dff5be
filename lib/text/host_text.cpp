// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/host_text.h"

#include <cstring>

namespace mlir_shard {

HostText::HostText(const Pieces &pieces, std::string_view prelude)
    : user(pieces.userText()), out(prelude), isUserText(prelude.empty()), column(prelude.size() + 1),
      displaced(!prelude.empty()) {
  pieces.each([&](const Pieces::Piece &piece) { isUserText &= piece.kind == Pieces::Piece::Kind::User; });
  if (isUserText)
    return;
  if (!prelude.empty())
    map.add(1, 1, 1, false);
  // Aliases are about as long as the text that they replace, and operations about as long as before.
  out.reserve(out.size() + user.size() + user.size() / 8);
  pieces.each([&](const Pieces::Piece &piece) { add(piece); });
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

void HostText::add(const Pieces::Piece &piece) {
  const auto [start, end] = piece.user;
  const std::size_t length = end - start;
  if (piece.kind == Pieces::Piece::Kind::User)
    return addInPlace(piece.text, start);
  const bool fits = piece.kind == Pieces::Piece::Kind::Replaced && piece.text.size() <= length &&
                    user.substr(start, length).find('\n') == std::string_view::npos;
  if (!fits)
    return addGenerated(piece.text, start);
  std::string padded(piece.text);
  padded.resize(length, ' ');
  addInPlace(padded, start);
}

void HostText::addGenerated(std::string_view text, std::size_t offset) {
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

// Adds a part of the user's text, or a replacement of the same number of characters in one line.
void HostText::addInPlace(std::string_view text, std::size_t offset) {
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
