// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The fixpoint of steps over nodes that share values. Steps are computed by a callback, once for each distinct input;
// the algorithm does not depend on the meaning of states.
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
  // The states of the values of a node.
  using States = std::vector<std::int32_t>;
  // Returns the states of a node's values after a step; nullopt if no state changes.
  using Step = std::function<std::optional<States>(std::int32_t behaviour, const States &before)>;

  // The change of a value that is tied to a changed value.
  struct Following {
    std::int32_t value;
    std::int32_t state;
    bool onlyIfUnknown; // Whether a known state of the value is kept.
    bool visits;        // Whether the nodes around the value are visited again.
  };
  // Returns the changes of the values that are tied to `value` after its state has become `state`.
  using Follow = std::function<std::vector<Following>(std::int32_t value, std::int32_t state)>;

  // Called before each step that changes a state, with the number of the node, which is -1 - i for node i of the
  // boundary, its behaviour and the states of its values.
  using Observe = std::function<void(std::int32_t node, std::int32_t behaviour, const States &before)>;

  // The initial state of a value. Nodes whose values are all unknown are skipped.
  static constexpr std::int32_t unknown = -1;
  // The behaviour of kinds of nodes that are skipped.
  static constexpr std::int32_t nothing = -1;

  // The state of the value `constant` never changes; the values that are tied to a value in `tied` change with it. The
  // nodes of `boundary` are visited once before all others, and once after. Nodes of the kinds in `deferred`, when a
  // value that they use has changed, wait until the worklist is empty. A node of the kinds in `loops` defines a value
  // that the nodes of a loop before it use too: when that value changes, they are visited after the node and its other
  // users, as in Shardy. Nodes of the kinds in `elsewhere` are in no loop. `nodes` and `boundary` must outlive this
  // object unchanged.
  Fixpoint(const Nodes &nodes, const Nodes &boundary, std::size_t valueCount, std::int32_t constant,
           const std::vector<std::int32_t> &tied, const std::vector<std::int32_t> &deferred,
           const std::vector<std::int32_t> &loops, const std::vector<std::int32_t> &elsewhere);

  // Visits all nodes in order, and then the definer and the users of each value whose state has changed, last changed
  // first, until no node is left. `states` contains the state of each value and is updated; `behaviours` contains the
  // behaviour of each kind of nodes, and `observe` may be empty. The results of `step` are cached between runs.
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
  // By kind; kinds past the end are not included.
  std::vector<char> deferredKinds, loopKinds, elsewhereKinds;
  // The behaviour with which a step of each node last changed nothing, if no value of the node has changed since;
  // `nothing` otherwise.
  std::vector<std::int32_t> settled;
  States last; // The states of all values after the last run; empty before the first run, when all are unknown.
  // The states of a node's values and its behaviour: the key in `known`.
  States key;
  std::unordered_map<States, std::optional<States>, StatesHash> known;
};

} // namespace mlir_shard
