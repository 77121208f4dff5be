// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The fixpoint of steps over nodes that share values. What a step does is decided elsewhere, and asked once for each
// distinct input; nothing here knows what the states of values mean.
#pragma once

#include "propagation/nodes.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

namespace mlir_shard {

class Fixpoint {
public:
  // Of the values of a node.
  using States = std::vector<std::int32_t>;
  // The states of a node's values after a step, none where all stay as they are.
  using Step = std::function<std::optional<States>(std::int32_t behaviour, const States &before)>;

  // What a value does when another one that it is tied to changes.
  struct Following {
    std::int32_t value;
    std::int32_t state;
    bool onlyIfUnknown; // It keeps a state that it has.
    bool visits;        // The nodes around it are stepped through again.
  };
  // What the values tied to `value` do when its state has become `state`.
  using Follow = std::function<std::vector<Following>(std::int32_t value, std::int32_t state)>;

  // Told of each step that changes something, before it does: the number of the node, -1 - i for the i-th of the
  // boundary, its behaviour and the states of its values.
  using Observe = std::function<void(std::int32_t node, std::int32_t behaviour, const States &before)>;

  // A value's state before anything is known of it. A node whose values are all in it is not asked about.
  static constexpr std::int32_t unknown = -1;
  // The behaviour of a kind of nodes that are not stepped through.
  static constexpr std::int32_t nothing = -1;

  // The state of the value `constant` never changes; changes of the values in `tied` are followed. The nodes of
  // `boundary` are stepped through once before all others, and once after. Nodes of the kinds in `deferred` wait, where
  // a value that they use has changed, until nothing else is left. A node of the kinds in `loops` defines a value that
  // the nodes in a loop before it use too: where that changes, they are visited after the node and what follows it, as
  // in Shardy. Nodes of the kinds in `elsewhere` are in no loop. The nodes stay where they are, and as they are.
  Fixpoint(const Nodes &nodes, const Nodes &boundary, std::size_t valueCount, std::int32_t constant,
           const std::vector<std::int32_t> &tied, const std::vector<std::int32_t> &deferred,
           const std::vector<std::int32_t> &loops, const std::vector<std::int32_t> &elsewhere);

  // Steps through all nodes in order, then through those around each value whose state has changed, the node that
  // defines it and its users, the last touched first, until none is left. `states` has that of each value, before and
  // after; `behaviours` says what the nodes of each kind do, and `observe` may be empty. What a behaviour does with given
  // states is remembered from run to run.
  void run(std::int32_t *states, const std::vector<std::int32_t> &behaviours, const Step &step, const Follow &follow,
           const Observe &observe);

  std::size_t valueCount() const { return definers.size(); }

private:
  struct StatesHash {
    std::size_t operator()(const States &states) const;
  };

  const std::optional<States> &stepped(const Step &step);
  void unsettle(std::int32_t value);
  bool isOf(const std::vector<char> &kinds, std::int32_t node) const {
    const auto kind = static_cast<std::size_t>(nodes.kind(node));
    return kind < kinds.size() && kinds[kind];
  }

  const Nodes &nodes, &boundary;
  std::int32_t constant;
  std::vector<char> isTied;
  std::vector<std::int32_t> definers;
  Groups users;
  std::vector<std::int32_t> deferredNodes; // In order.
  // By kind; those behind the end are not of it.
  std::vector<char> deferredKinds, loopKinds, elsewhereKinds;
  // The behaviour that last changed nothing at a node, none of whose values has changed since; or `nothing`.
  std::vector<std::int32_t> settled;
  States last; // Of all values after the last run; empty before it, when all are unknown.
  // The states of a node's values, then its behaviour: what `known` is looked up with.
  States key;
  std::unordered_map<States, std::optional<States>, StatesHash> known;
};

} // namespace mlir_shard
