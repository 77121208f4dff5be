// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Lexical questions about MLIR text that have to be answered for every character of a module.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace mlir_shard {

bool isSpace(char c);

// The offset behind the characters of a name that begin at `position`, maybe none.
std::size_t skipName(std::string_view text, std::size_t position);

// The offset behind the string literal that begins at `position`. An unterminated one ends with its line.
std::size_t skipString(std::string_view text, std::size_t position);

// The offset behind blanks and comments.
std::size_t skipSpace(std::string_view text, std::size_t position);

// The offsets at which a dialect's names begin, in order: of `ns.name` (an operation or attribute name), `#ns.name`,
// `#ns<name ...>` (and the same with `!`) and of the quoted operation name `"ns.name"`, for each `ns` in `namespaces`.
// Names inside other strings and inside comments are left out.
std::vector<std::size_t> findNames(std::string_view text, const std::vector<std::string_view> &namespaces);

// The offset of the bracket that closes the one at `open`, one of ( [ { <; npos where there is none. Brackets in
// strings and comments do not count; < and > count only for an opening <, and there `->`, `<=` and `>=` do not.
std::size_t findClosing(std::string_view text, std::size_t open);

// The offset of the first of the brackets ( [ { outside of strings and comments that is inside of `most` others; npos
// where there is none.
std::size_t findDeepBracket(std::string_view text, std::size_t most);

// Whether text is one operation `module` in custom syntax, besides aliases and comments. False where that takes more
// than looking for brackets to tell.
bool isOneModule(std::string_view text);

} // namespace mlir_shard
