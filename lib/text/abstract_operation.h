// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Operations whose texts differ in the names of values alone: a model repeats a few, between other values.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mlir_shard {

// A part of a text, from one offset up to another.
using Span = std::pair<std::size_t, std::size_t>;

// An operation of a text, with numbers in the place of the names of its values.
struct AbstractOperation {
  std::string text;                     // The operation on its own, without the body of its region. Value i is `%i`.
  std::vector<std::string_view> values; // Their names, in order.
  std::vector<std::size_t> places;      // Where the numbers of the values are in `text`.
  std::size_t start, end;               // Where the operation begins, from its name on, and ends.
  std::optional<Span> body;             // The body of the region, without a label; none where there is no region.

  // The offset in the source of an offset of `text` in front of the region.
  std::size_t offsetOf(std::size_t abstract) const;
};

// The operation whose name is at `name`; none where its end is unknown before it is read. It ends with its line, or the
// line on which its region ends, which begins at the end of a line. A location may follow.
std::optional<AbstractOperation> abstractOperation(std::string_view text, std::size_t name);

// The translation of operations that differ in the names of values.
class OperationTemplate {
public:
  // `before` comes in front of the arguments of the region, `opening` between these and its body, `closing` behind the
  // body, and `behind` at the end. In `before` and `behind`, `%i` is the name of value i. `arguments` are offsets in
  // the abstract text.
  OperationTemplate(std::string_view before, std::optional<Span> arguments, std::string opening, std::string closing,
                    std::string_view behind);

  std::string before(const AbstractOperation &op) const { return joined(partsBefore, op); }
  std::string behind(const AbstractOperation &op) const { return joined(partsBehind, op); }
  // Where the arguments of the region are in the source.
  std::optional<Span> arguments(const AbstractOperation &op) const;
  const std::string &opening() const { return textOpening; }
  const std::string &closing() const { return textClosing; }

private:
  // A text, and the number of the value behind it.
  struct Part {
    std::string text;
    std::optional<std::size_t> value;
  };

  static std::vector<Part> parts(std::string_view text);
  static std::string joined(const std::vector<Part> &parts, const AbstractOperation &op);

  std::vector<Part> partsBefore, partsBehind;
  std::optional<Span> argumentsInText;
  std::string textOpening, textClosing;
};

} // namespace mlir_shard
