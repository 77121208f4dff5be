// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/translation.h"

#include "text/text.h"

#include <algorithm>

namespace mlir_shard {

Translation::Translation(std::string_view text, const std::vector<std::string_view> &dialects,
                         std::unordered_set<std::string> operations, bool isGeneric)
    : text(text), isGeneric(isGeneric), names(findNames(text, dialects)),
      operations(std::move(operations)), found(text) {}

void Translation::translate(Span part, const Reader &reader) {
  auto [start, end] = part;
  auto name = std::lower_bound(names.begin(), names.end(), start);
  while (name != names.end() && *name < end) {
    const bool isAttribute = text[*name] == '#';
    if (isAttribute || isOperation(*name)) {
      found.addUser({start, *name});
      start = *name;
      if (const auto after = isAttribute ? translateAttribute(*name, reader) : translateOperation(*name, reader))
        start = *after;
    }
    // The next name is near, unless the operation has a region.
    do
      ++name;
    while (name != names.end() && *name < start);
  }
  found.addUser({start, end});
}

// Returns whether the name of a dialect's operation is at an offset. An attribute in a dictionary, a symbol, a location
// or an element of an array may begin in the same way.
bool Translation::isOperation(std::size_t name) const {
  const bool isQuoted = text[name] == '"';
  if (isGeneric && !isQuoted)
    return false;
  const std::size_t start = name + isQuoted, end = skipName(text, start);
  if (operations.count(std::string(text.substr(start, end - start))) == 0)
    return false;
  std::size_t next = end;
  if (isQuoted) {
    if (end >= text.size() || text[end] != '"')
      return false;
    next = end + 1;
  }
  next = skipSpace(text, next);
  const char follows = next < text.size() ? text[next] : '\0';
  if (!isQuoted)
    return follows != '=' && follows != ',';
  std::size_t before = name;
  while (before > 0 && isSpace(text[before - 1]))
    --before;
  return follows == '(' && (before == 0 || std::string_view("@([,").find(text[before - 1]) == std::string_view::npos);
}

std::optional<std::size_t> Translation::translateAttribute(std::size_t name, const Reader &reader) {
  const std::size_t open = text.find('<', name);
  const std::size_t close = open == std::string_view::npos ? open : findClosing(text, open);
  if (close != std::string_view::npos) {
    const auto known = attributes.find(text.substr(name, close + 1 - name));
    if (known != attributes.end()) {
      found.addReplaced(known->second, {name, close + 1});
      return close + 1;
    }
  }
  auto translated = reader.attribute(name);
  if (!translated)
    return std::nullopt;
  auto &[replacement, end] = *translated;
  found.addReplaced(replacement, {name, end});
  attributes.emplace(text.substr(name, end - name), std::move(replacement));
  return end;
}

std::optional<std::size_t> Translation::translateOperation(std::size_t name, const Reader &reader) {
  if (const auto op = abstractOperation(text, name)) {
    auto known = templates.find(op->text);
    if (known == templates.end())
      known = templates.emplace(op->text, reader.abstractOperation(*op)).first;
    if (known->second) {
      // Operations in its region may add templates, which does not move existing ones.
      add(*op, *known->second, reader);
      return op->end;
    }
  }
  return reader.operation(name);
}

void Translation::add(const AbstractOperation &op, const OperationTemplate &translated, const Reader &reader) {
  found.addGenerated(translated.before(op), op.start);
  if (op.body) {
    if (const auto arguments = translated.arguments(op)) {
      translate(*arguments, reader);
      found.addGenerated(translated.opening(), arguments->second);
    } else {
      found.addGenerated(translated.opening(), op.body->first);
    }
    translate(*op.body, reader);
    found.addGenerated(translated.closing(), op.body->second);
  }
  found.addGenerated(translated.behind(op), op.end);
}

} // namespace mlir_shard
