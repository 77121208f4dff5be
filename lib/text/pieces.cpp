// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/pieces.h"

namespace mlir_shard {

void Pieces::addUser(Span part) {
  if (part.first < part.second)
    stored.push_back({Piece::Kind::User, part, 0, 0});
}

void Pieces::addReplaced(std::string_view text, Span part) {
  stored.push_back({Piece::Kind::Replaced, part, made.size(), text.size()});
  made += text;
}

void Pieces::addGenerated(std::string_view text, std::size_t offset) {
  stored.push_back({Piece::Kind::Generated, {offset, offset}, made.size(), text.size()});
  made += text;
}

std::string Pieces::joined() const {
  std::string all;
  std::size_t size = 0;
  each([&](const Piece &piece) { size += piece.text.size(); });
  all.reserve(size);
  each([&](const Piece &piece) { all += piece.text; });
  return all;
}

} // namespace mlir_shard
