// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text.h"

#include <algorithm>

namespace mlir_shard {
namespace {

bool isNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
         c == '.' || c == '-';
}

// The offset behind the string literal that begins at `position`. An unterminated one ends with its line.
std::size_t skipString(std::string_view text, std::size_t position) {
  for (++position; position < text.size() && text[position] != '\n'; ++position) {
    if (text[position] == '"')
      return position + 1;
    if (text[position] == '\\')
      ++position;
  }
  return std::min(position, text.size());
}

std::size_t skipComment(std::string_view text, std::size_t position) {
  std::size_t end = text.find('\n', position);
  return end == std::string_view::npos ? text.size() : end;
}

bool startsComment(std::string_view text, std::size_t position) {
  return text[position] == '/' && position + 1 < text.size() && text[position + 1] == '/';
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

} // namespace

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
      while (position < text.size() && isNameCharacter(text[position]))
        ++position;
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
    char c = text[position];
    switch (c) {
    case '"':
      position = skipString(text, position);
      continue;
    case '/':
      if (startsComment(text, position)) {
        position = skipComment(text, position);
        continue;
      }
      break;
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

} // namespace mlir_shard
