// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Lexical functions for MLIR text that process every character of a module.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace mlir_shard {

bool isSpace(char c);

// Returns the offset after the name characters that begin at `position`; there may be none.
std::size_t skipName(std::string_view text, std::size_t position);

// Returns the offset after the string literal that begins at `position`. An unterminated literal ends with its line.
std::size_t skipString(std::string_view text, std::size_t position);

// Returns the offset after blanks and comments.
std::size_t skipSpace(std::string_view text, std::size_t position);

// Returns the offsets at which the names of dialects begin, in order: of `ns.name` (an operation or attribute name),
// `#ns.name`, `#ns<name ...>` (and the same with `!`) and of the quoted operation name `"ns.name"`, for each `ns` in
// `namespaces`. Names inside other strings and inside comments are left out.
std::vector<std::size_t> findNames(std::string_view text, const std::vector<std::string_view> &namespaces);

// Returns the offset of the bracket that closes the one at `open`, which is one of ( [ { <; npos if none exists.
// Brackets in strings and comments are ignored; < and > are only matched for an opening <, except in `->`, `<=` and
// `>=`.
std::size_t findClosing(std::string_view text, std::size_t open);

// Returns the offset of the first bracket ( [ { outside of strings and comments that is nested in `most` others; npos
// if none exists.
std::size_t findDeepBracket(std::string_view text, std::size_t most);

// Returns whether a text is a single operation `module` in custom syntax, besides aliases and comments. Returns false
// if matching brackets is not sufficient to tell.
bool isOneModule(std::string_view text);

} // namespace mlir_shard
