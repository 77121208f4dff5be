// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The nodes of a fixpoint: each has a kind, the values that it uses and the values that it defines.
#pragma once

#include "arrays/module_arrays.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace mlir_shard {

class Nodes {
public:
  using Numbers = std::vector<std::int32_t>;
  // The kind of a node, the values that it uses, and the values that it defines.
  using Node = std::tuple<std::int32_t, Numbers, Numbers>;

  // The conversion of the operations of each signature to nodes.
  struct Reading {
    // The operands to check for other uses; nullopt if each operation of the signature is converted individually.
    std::vector<std::optional<Numbers>> watched;
    // Returns the kind of the operations of a signature, given whether a watched operand has other uses; called once
    // for each pair.
    std::function<std::int32_t(std::int32_t signature, bool shared)> kindOf;
    // Returns the nodes of an operation that is converted individually.
    std::function<std::vector<Node>(std::int32_t op)> nodesOf;
  };

  void add(std::int32_t kind, const Numbers &uses, const Numbers &definitions);

  // Adds the nodes of operations, in the given order. The number of a value in the nodes is its number in the module
  // plus one for results, 0 for block arguments, or the number in `moved` if the value is in it.
  void addOperations(const ModuleArrays &arrays, const Numbers &ops,
                     const std::vector<std::pair<std::int32_t, std::int32_t>> &moved, const Reading &reading);

  std::size_t size() const { return kinds.size(); }
  Node at(std::size_t node) const;

  std::int32_t kind(std::size_t node) const { return kinds[node]; }
  // The values of a node: the used ones up to `definitions`, followed by the defined ones.
  const std::int32_t *begin(std::size_t node) const { return values.data() + start[node]; }
  const std::int32_t *definitions(std::size_t node) const { return values.data() + middle[node]; }
  const std::int32_t *end(std::size_t node) const { return values.data() + start[node + 1]; }

private:
  Numbers kinds, values, start{0}, middle;
};

} // namespace mlir_shard
