// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The fixpoint of steps over nodes that share values. What a step does is decided elsewhere, and asked once for each
// distinct input; nothing here knows what the states of values mean.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

namespace mlir_shard {

class Fixpoint {
public:
  using States = std::vector<std::int32_t>;
  // The states of a node's values after the step of its kind, none where all stay as they are.
  using Step = std::function<std::optional<States>(std::int32_t kind, const States &before)>;

  // A value's state before anything is known of it. A node whose values are all in it is not asked about.
  static constexpr std::int32_t unknown = -1;

  Fixpoint(std::size_t valueCount, Step step);

  // Adds a node: its kind, the values it uses and those it defines.
  void add(std::int32_t kind, const std::vector<std::int32_t> &uses, const std::vector<std::int32_t> &definitions);

  // Steps through all nodes in order, then through those around each value whose state has changed, the node that
  // defines it and its users, the last touched first, until none is left. `states` are those of the values, before and
  // after.
  void run(States &states);

private:
  struct Node {
    std::int32_t kind;
    std::vector<std::int32_t> values;
  };
  struct StatesHash {
    std::size_t operator()(const States &states) const;
  };

  const std::optional<States> &after(const Node &node, const States &states);

  Step step;
  std::vector<Node> nodes;
  std::vector<std::int32_t> definers;
  std::vector<std::vector<std::int32_t>> users;
  std::unordered_map<States, std::optional<States>, StatesHash> known;
};

} // namespace mlir_shard
