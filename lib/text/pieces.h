// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The translation of a text: pieces of that text and generated pieces, in the order of the text.
#pragma once

#include "text/abstract_operation.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mlir_shard {

class Pieces {
public:
  struct Piece {
    enum class Kind { User, Replaced, Generated };

    Kind kind;
    Span user;             // The part of the user's text; for generated text, an empty part at its offset.
    std::string_view text; // The text in the translation.
  };

  // The user's text must outlive this object.
  explicit Pieces(std::string_view user) : user(user) {}

  std::string_view userText() const { return user; }

  // Adds a part of the user's text.
  void addUser(Span part);
  // Adds a replacement of a part of the user's text.
  void addReplaced(std::string_view text, Span part);
  // Adds generated text for an operation or attribute at an offset of the user's text.
  void addGenerated(std::string_view text, std::size_t offset);

  // Calls `visit` with each piece.
  template <typename Visit> void each(Visit visit) const {
    for (const Stored &one : stored)
      visit(Piece{one.kind, one.user,
                  one.kind == Piece::Kind::User ? user.substr(one.user.first, one.user.second - one.user.first)
                                                : std::string_view(made).substr(one.start, one.length)});
  }

  std::string joined() const;

private:
  struct Stored {
    Piece::Kind kind;
    Span user;
    std::size_t start, length; // Indices into `made`.
  };

  std::string_view user;
  std::string made;
  std::vector<Stored> stored;
};

} // namespace mlir_shard
