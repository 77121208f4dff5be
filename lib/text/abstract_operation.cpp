// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "text/abstract_operation.h"

#include "text/text.h"

#include <algorithm>
#include <utility>

namespace mlir_shard {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }

// Returns the end of the line that contains an offset, without trailing blanks.
std::size_t lineEnd(std::string_view text, std::size_t offset) {
  std::size_t end = std::min(text.find('\n', offset), text.size());
  while (end > offset && isSpace(text[end - 1]))
    --end;
  return end;
}

// Returns the end of the label of a block at the beginning of a region; nullopt if it has no label.
std::optional<std::size_t> labelEnd(std::string_view text, std::size_t position) {
  while (position < text.size() && isSpace(text[position]))
    ++position;
  if (position >= text.size() || text[position] != '^')
    return std::nullopt;
  const std::size_t end = skipName(text, position + 1);
  return end == position + 1 ? std::nullopt : std::optional(end);
}

// Returns whether a line that begins with a character may continue the operation on the line before.
bool mayContinue(char c, bool hasValues) {
  return std::string_view("{:,(<#-[").find(c) != std::string_view::npos || (c == '%' && !hasValues);
}

// Returns the end of the name of a value that begins at a `%`, with the number of a result; `position` if it has none.
std::size_t skipValue(std::string_view text, std::size_t position) {
  std::size_t end = skipName(text, position + 1);
  if (end == position + 1)
    return position;
  if (end + 1 < text.size() && text[end] == '#' && isDigit(text[end + 1]))
    for (++end; end < text.size() && isDigit(text[end]);)
      ++end;
  return end;
}

// Returns the offsets between the brackets of `dense<...>` at a position of a part of the text; nullopt if it is not
// there, or ends outside of the part.
std::optional<Span> elementsAt(std::string_view text, std::size_t position, Span part) {
  constexpr std::string_view dense = "dense<";
  const bool isInName = position > part.first && skipName(text, position - 1) > position;
  if (isInName || text.substr(position, dense.size()) != dense)
    return std::nullopt;
  const std::size_t begin = position + dense.size(), close = findClosing(text, begin - 1);
  return close < part.second ? std::optional(Span(begin, close)) : std::nullopt;
}

// Appends a part of the text of an operation, up to a location. Returns the offset of the location, or the end of the
// part if none exists; nullopt if a string contains a `%`.
std::optional<std::size_t> append(std::string_view text, Span part, AbstractOperation &to) {
  auto [position, end] = part;
  constexpr std::string_view location = " loc(";
  std::size_t copied = position;
  const auto abstract = [&](Span value) {
    to.text += text.substr(copied, value.first - copied);
    to.places.push_back(to.text.size());
    to.text += '%';
    to.text += std::to_string(to.values.size());
    to.values.push_back(text.substr(value.first, value.second - value.first));
    copied = position = value.second;
  };
  while (position < end) {
    const char c = text[position];
    if (c == 'd') {
      if (const auto elements = elementsAt(text, position, part))
        abstract(*elements);
      else
        ++position;
    } else if (c == '"') {
      const std::size_t after = std::min(skipString(text, position), end);
      if (text.substr(position, after - position).find('%') != std::string_view::npos)
        return std::nullopt;
      position = after;
    } else if (c == '%') {
      const std::size_t after = std::min(skipValue(text, position), end);
      if (after == position) {
        ++position;
        continue;
      }
      abstract({position, after});
    } else if (c == ' ' && text.substr(position, location.size()) == location) {
      break;
    } else {
      ++position;
    }
  }
  to.text += text.substr(copied, position - copied);
  return position;
}

} // namespace

std::size_t AbstractOperation::offsetOf(std::size_t abstract) const {
  std::size_t source = start, passed = 0;
  for (std::size_t number = 0; number < values.size() && places[number] < abstract; ++number) {
    source += places[number] - passed + values[number].size();
    passed = places[number] + 1 + std::to_string(number).size();
  }
  return source + abstract - passed;
}

std::optional<AbstractOperation> abstractOperation(std::string_view text, std::size_t name) {
  AbstractOperation op;
  op.start = name;
  std::size_t headEnd = lineEnd(text, name);
  std::size_t close = std::string_view::npos;
  if (headEnd > name && text[headEnd - 1] == '{') {
    close = findClosing(text, headEnd - 1);
    if (close == std::string_view::npos)
      return std::nullopt;
    if (const auto label = labelEnd(text, headEnd)) {
      // In generic form, the arguments are on a separate line.
      headEnd = lineEnd(text, *label);
      if (text[headEnd - 1] != ':' || headEnd > close)
        return std::nullopt;
    }
    op.body = Span(headEnd, close);
  }
  const auto end = append(text, {name, headEnd}, op);
  if (!end || (op.body && *end != headEnd))
    return std::nullopt;
  op.end = *end;
  std::size_t after = headEnd;
  if (op.body) {
    after = lineEnd(text, close);
    const auto tailEnd = append(text, {close, after}, op);
    if (!tailEnd)
      return std::nullopt;
    op.end = *tailEnd;
  }
  const std::size_t next = skipSpace(text, op.end);
  if (next < text.size() && mayContinue(text[next], !op.values.empty()))
    return std::nullopt;
  return op;
}

OperationTemplate::OperationTemplate(std::string_view before, std::optional<Span> arguments, std::string opening,
                                     std::string closing, std::string_view behind)
    : partsBefore(parts(before)), partsBehind(parts(behind)), argumentsInText(arguments),
      textOpening(std::move(opening)), textClosing(std::move(closing)) {}

std::optional<Span> OperationTemplate::arguments(const AbstractOperation &op) const {
  if (!argumentsInText)
    return std::nullopt;
  return Span(op.offsetOf(argumentsInText->first), op.offsetOf(argumentsInText->second));
}

std::vector<OperationTemplate::Part> OperationTemplate::parts(std::string_view text) {
  std::vector<Part> found(1);
  for (std::size_t position = 0; position < text.size();) {
    if (text[position] != '%' || position + 1 >= text.size() || !isDigit(text[position + 1])) {
      found.back().text += text[position++];
      continue;
    }
    std::size_t number = 0;
    for (++position; position < text.size() && isDigit(text[position]); ++position)
      number = 10 * number + (text[position] - '0');
    found.back().value = number;
    found.emplace_back();
  }
  return found;
}

std::string OperationTemplate::joined(const std::vector<Part> &parts, const AbstractOperation &op) {
  std::string text;
  for (const Part &part : parts) {
    text += part.text;
    if (part.value)
      text += op.values.at(*part.value);
  }
  return text;
}

} // namespace mlir_shard
