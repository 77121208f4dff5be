// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Operations with the names of their values abstracted, so that equal operations are translated once.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mlir_shard {

// A part of a text, as offsets of its start and end.
using Span = std::pair<std::size_t, std::size_t>;

// An operation of a text, with numbers in place of the names of its values, and of the elements in `dense<...>`, which
// count as values.
struct AbstractOperation {
  std::string text;                     // The operation without the body of its region. Value i is `%i`.
  std::vector<std::string_view> values; // The names of the values, in order.
  std::vector<std::size_t> places;      // The offsets of the values in `text`.
  std::size_t start, end;               // The offsets of the operation's name and of its end, in the source.
  std::optional<Span> body;             // The region without its braces and its label; nullopt if none exists.

  // Returns the offset in the source that corresponds to an offset of `text` before the region.
  std::size_t offsetOf(std::size_t abstract) const;
};

// Returns the operation with its name at `name`; nullopt if its end cannot be found without parsing it. The end is
// found if the operation is on one line, or if its region begins at the end of its line. A location may follow.
std::optional<AbstractOperation> abstractOperation(std::string_view text, std::size_t name);

// The translation of operations that differ only in the names of values.
class OperationTemplate {
public:
  // `before` precedes the arguments of the region, `opening` is inserted between the arguments and the body, `closing`
  // after the body, and `behind` at the end. In `before` and `behind`, `%i` stands for the name of value i. `arguments`
  // are offsets in the abstract text.
  OperationTemplate(std::string_view before, std::optional<Span> arguments, std::string opening, std::string closing,
                    std::string_view behind);

  std::string before(const AbstractOperation &op) const { return joined(partsBefore, op); }
  std::string behind(const AbstractOperation &op) const { return joined(partsBehind, op); }
  // Returns the part of the source with the arguments of the region; nullopt if none exist.
  std::optional<Span> arguments(const AbstractOperation &op) const;
  const std::string &opening() const { return textOpening; }
  const std::string &closing() const { return textClosing; }

private:
  // A text, and the number of the value that follows it.
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
