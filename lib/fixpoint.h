// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The fixpoint of steps over nodes that share values. What a step does is decided elsewhere, and asked once for each
// distinct input; nothing here knows what the states of values mean.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace mlir_shard {

class Fixpoint {
public:
  using States = std::vector<std::int32_t>;
  // The states of a node's values after the step of its kind, none where all stay as they are.
  using Step = std::function<std::optional<States>(std::int32_t kind, const States &before)>;

  // What a value does when another one that it is tied to changes.
  struct Following {
    std::int32_t value;
    std::int32_t state;
    bool onlyIfUnknown; // It keeps a state that it has.
    bool visits;        // The nodes around it are stepped through again.
  };
  // What the values tied to `value` do when its state has become `state`.
  using Follow = std::function<std::vector<Following>(std::int32_t value, std::int32_t state)>;

  // A value's state before anything is known of it. A node whose values are all in it is not asked about.
  static constexpr std::int32_t unknown = -1;

  // The state of the value `constant` never changes; changes of the values in `tied` are followed.
  Fixpoint(std::size_t valueCount, std::int32_t constant, const std::vector<std::int32_t> &tied);

  // Adds a node: its kind, the values it uses and those it defines.
  void add(std::int32_t kind, const std::vector<std::int32_t> &uses, const std::vector<std::int32_t> &definitions);

  // Steps through all nodes in order, then through those around each value whose state has changed, the node that
  // defines it and its users, the last touched first, until none is left. `states` are those of the values, before and
  // after.
  void run(States &states, const Step &step, const Follow &follow) const;

private:
  struct Node {
    std::int32_t kind;
    std::vector<std::int32_t> values;
  };

  std::int32_t constant;
  std::vector<char> isTied;
  std::vector<Node> nodes;
  std::vector<std::int32_t> definers;
  std::vector<std::vector<std::int32_t>> users;
};

} // namespace mlir_shard
