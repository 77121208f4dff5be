// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/text.h"

#include <algorithm>
#include <array>

namespace mlir_shard {
namespace {

// A flag for each character code, set if the character may be part of a name.
constexpr auto nameCharacters = [] {
  std::array<bool, 256> found{};
  constexpr std::string_view ranges = "azAZ09__$$-.";
  for (std::size_t i = 0; i < ranges.size(); i += 2)
    for (char c = ranges[i]; c <= ranges[i + 1]; ++c)
      found[static_cast<unsigned char>(c)] = true;
  return found;
}();

bool isNameCharacter(char c) { return nameCharacters[static_cast<unsigned char>(c)]; }

std::size_t skipComment(std::string_view text, std::size_t position) {
  return std::min(text.find('\n', position), text.size());
}

bool startsComment(std::string_view text, std::size_t position) {
  return text[position] == '/' && position + 1 < text.size() && text[position + 1] == '/';
}

// Skips a string or a comment that starts at `position`. Returns false if none exists.
bool skipStringOrComment(std::string_view text, std::size_t &position) {
  if (text[position] == '"')
    position = skipString(text, position);
  else if (startsComment(text, position))
    position = skipComment(text, position);
  else
    return false;
  return true;
}

bool startsNameOf(std::string_view text, std::size_t position, const std::vector<std::string_view> &namespaces,
                  bool sigil) {
  for (std::string_view name : namespaces) {
    if (text.substr(position, name.size()) != name || position + name.size() >= text.size())
      continue;
    char after = text[position + name.size()];
    if (after == '.' || (sigil && after == '<'))
      return true;
  }
  return false;
}

// Returns the offset after blanks, comments and definitions of aliases, each of which ends at the end of a line.
std::size_t skipAliases(std::string_view text, std::size_t position) {
  position = skipSpace(text, position);
  while (position < text.size() && (text[position] == '#' || text[position] == '!')) {
    while (position < text.size() && text[position] != '\n') {
      if (skipStringOrComment(text, position))
        continue;
      const char c = text[position];
      if (c == '(' || c == '[' || c == '{' || c == '<') {
        const std::size_t close = findClosing(text, position);
        if (close == std::string_view::npos)
          return text.size();
        position = close + 1;
      } else {
        ++position;
      }
    }
    position = skipSpace(text, position);
  }
  return position;
}

bool startsWord(std::string_view text, std::size_t position, std::string_view word) {
  return text.substr(position, word.size()) == word &&
         (position + word.size() >= text.size() || !isNameCharacter(text[position + word.size()]));
}

} // namespace

bool isSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::size_t skipName(std::string_view text, std::size_t position) {
  while (position < text.size() && isNameCharacter(text[position]))
    ++position;
  return position;
}

std::size_t skipString(std::string_view text, std::size_t position) {
  for (++position; position < text.size() && text[position] != '\n'; ++position) {
    if (text[position] == '"')
      return position + 1;
    if (text[position] == '\\')
      ++position;
  }
  return std::min(position, text.size());
}

std::size_t skipSpace(std::string_view text, std::size_t position) {
  while (position < text.size()) {
    if (startsComment(text, position))
      position = skipComment(text, position);
    else if (isSpace(text[position]))
      ++position;
    else
      break;
  }
  return position;
}

std::vector<std::size_t> findNames(std::string_view text, const std::vector<std::string_view> &namespaces) {
  std::vector<std::size_t> found;
  std::size_t position = 0;
  while (position < text.size()) {
    char c = text[position];
    if (c == '"') {
      if (startsNameOf(text, position + 1, namespaces, false))
        found.push_back(position);
      position = skipString(text, position);
    } else if (c == '/' && startsComment(text, position)) {
      position = skipComment(text, position);
    } else if (isNameCharacter(c) || c == '#' || c == '!' || c == '%' || c == '@' || c == '^') {
      std::size_t start = position;
      bool sigil = !isNameCharacter(c);
      position += sigil;
      if (c != '%' && c != '@' && c != '^' && startsNameOf(text, position, namespaces, sigil))
        found.push_back(start);
      position = skipName(text, position);
    } else {
      ++position;
    }
  }
  return found;
}

std::size_t findClosing(std::string_view text, std::size_t open) {
  const bool angles = text[open] == '<';
  std::vector<char> expected;
  for (std::size_t position = open; position < text.size();) {
    if (skipStringOrComment(text, position))
      continue;
    const char c = text[position];
    switch (c) {
    case '(':
      expected.push_back(')');
      break;
    case '[':
      expected.push_back(']');
      break;
    case '{':
      expected.push_back('}');
      break;
    case '<':
      if (angles && !(position + 1 < text.size() && text[position + 1] == '='))
        expected.push_back('>');
      break;
    case '-':
      if (position + 1 < text.size() && text[position + 1] == '>')
        ++position;
      break;
    case '>':
      if (!angles || (position + 1 < text.size() && text[position + 1] == '=' && expected.back() != '>'))
        break;
      [[fallthrough]];
    case ')':
    case ']':
    case '}':
      if (expected.empty() || expected.back() != c)
        return std::string_view::npos;
      expected.pop_back();
      if (expected.empty())
        return position;
      break;
    default:
      break;
    }
    ++position;
  }
  return std::string_view::npos;
}

std::size_t findDeepBracket(std::string_view text, std::size_t most) {
  std::size_t depth = 0;
  for (std::size_t position = 0; position < text.size();) {
    if (skipStringOrComment(text, position))
      continue;
    switch (text[position]) {
    case '(':
    case '[':
    case '{':
      if (++depth > most)
        return position;
      break;
    case ')':
    case ']':
    case '}':
      depth -= depth > 0;
      break;
    default:
      break;
    }
    ++position;
  }
  return std::string_view::npos;
}

bool isOneModule(std::string_view text) {
  std::size_t position = skipAliases(text, 0);
  if (!startsWord(text, position, "module"))
    return false;
  for (position += std::string_view("module").size();;) {
    position = skipSpace(text, position);
    if (position >= text.size())
      return false;
    if (text[position] == '@') {
      ++position;
      if (position < text.size() && text[position] == '"')
        position = skipString(text, position);
      position = skipName(text, position);
    } else if (startsWord(text, position, "attributes")) {
      position = skipSpace(text, position + std::string_view("attributes").size());
      if (position >= text.size() || text[position] != '{')
        return false;
      const std::size_t close = findClosing(text, position);
      if (close == std::string_view::npos)
        return false;
      position = close + 1;
    } else {
      break;
    }
  }
  if (text[position] != '{')
    return false;
  const std::size_t close = findClosing(text, position);
  if (close == std::string_view::npos)
    return false;
  position = skipSpace(text, close + 1);
  if (startsWord(text, position, "loc")) {
    position = skipSpace(text, position + std::string_view("loc").size());
    const std::size_t end = position < text.size() && text[position] == '(' ? findClosing(text, position)
                                                                             : std::string_view::npos;
    if (end == std::string_view::npos)
      return false;
    position = end + 1;
  }
  return skipAliases(text, position) >= text.size();
}

} // namespace mlir_shard
