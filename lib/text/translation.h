// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The translation of a text. A reader translates each distinct attribute and operation once.
#pragma once

#include "text/abstract_operation.h"
#include "text/pieces.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace mlir_shard {

class Translation {
public:
  // Callbacks that translate the attributes and operations of the dialects.
  struct Reader {
    // Returns the translation of the attribute at an offset, and its end; nullopt to keep the text.
    std::function<std::optional<std::pair<std::string, std::size_t>>(std::size_t)> attribute;
    // Returns the translation of operations that differ only in the names of values; nullopt to call `operation` for
    // each.
    std::function<std::optional<OperationTemplate>(const AbstractOperation &)> abstractOperation;
    // Adds the pieces of the operation whose name is at an offset, and returns its end; nullopt to keep the text.
    std::function<std::optional<std::size_t>(std::size_t)> operation;
  };

  // The text must outlive this object. `operations` contains the names of the dialects' operations. If the text is
  // printed in generic form, only quoted names are operation names.
  Translation(std::string_view text, const std::vector<std::string_view> &dialects,
              std::unordered_set<std::string> operations, bool isGeneric);

  // Adds the pieces for a part of the text. The functions of `reader` may call this function.
  void translate(Span part, const Reader &reader);

  Pieces &pieces() { return found; }
  const Pieces &pieces() const { return found; }

private:
  bool isOperation(std::size_t name) const;
  std::optional<std::size_t> translateAttribute(std::size_t name, const Reader &reader);
  std::optional<std::size_t> translateOperation(std::size_t name, const Reader &reader);
  void add(const AbstractOperation &op, const OperationTemplate &translated, const Reader &reader);

  std::string_view text;
  bool isGeneric;
  std::vector<std::size_t> names;
  std::unordered_set<std::string> operations;
  std::unordered_map<std::string_view, std::string> attributes;
  std::unordered_map<std::string, std::optional<OperationTemplate>> templates;
  Pieces found;
};

} // namespace mlir_shard
