// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What a fixpoint goes through: nodes of some kind, each with the values it uses and those it defines.
#pragma once

#include "arrays/module_arrays.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace mlir_shard {

class Nodes {
public:
  using Numbers = std::vector<std::int32_t>;
  // A kind, the values used and those defined.
  using Node = std::tuple<std::int32_t, Numbers, Numbers>;

  // How the operations of a signature become nodes.
  struct Reading {
    // The operands that count for the question whether an operand has other uses; none where the operations have to be
    // asked about one by one.
    std::vector<std::optional<Numbers>> watched;
    // The kind of the operations of a signature, by whether a watched operand has other uses; asked once for each.
    std::function<std::int32_t(std::int32_t signature, bool shared)> kindOf;
    // The nodes of an operation asked about on its own.
    std::function<std::vector<Node>(std::int32_t op)> nodesOf;
  };

  void add(std::int32_t kind, const Numbers &uses, const Numbers &definitions);

  // Adds the nodes of operations, in the order given. The values of the nodes are the places of those of the module:
  // that of a result is its number and one more, and that of a block argument 0, but for those that are in `moved`.
  void addOperations(const ModuleArrays &arrays, const Numbers &ops,
                     const std::unordered_map<std::int32_t, std::int32_t> &moved, const Reading &reading);

  std::size_t size() const { return kinds.size(); }
  Node at(std::size_t node) const;

  std::int32_t kind(std::size_t node) const { return kinds[node]; }
  // The values of a node: those used up to `definitions`, then those defined.
  const std::int32_t *begin(std::size_t node) const { return values.data() + start[node]; }
  const std::int32_t *definitions(std::size_t node) const { return values.data() + middle[node]; }
  const std::int32_t *end(std::size_t node) const { return values.data() + start[node + 1]; }

private:
  Numbers kinds, values, start{0}, middle;
};

} // namespace mlir_shard
