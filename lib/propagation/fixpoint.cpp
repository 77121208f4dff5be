// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "propagation/fixpoint.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

namespace mlir_shard {
namespace {

// A worklist of node numbers without duplicates, which initially contains all nodes in order; the node added last is
// popped first.
class Worklist {
public:
  explicit Worklist(std::size_t count) : waiting(count, 1) {}

  bool empty() const { return added.empty() && first == waiting.size(); }

  std::int32_t pop() {
    std::int32_t number;
    if (added.empty()) {
      number = static_cast<std::int32_t>(first++);
    } else {
      number = added.back();
      added.pop_back();
    }
    waiting[number] = 0;
    return number;
  }

  void add(std::int32_t number) {
    if (waiting[number])
      return;
    waiting[number] = 1;
    added.push_back(number);
  }

private:
  std::size_t first = 0; // The smallest initial number that was not popped yet.
  std::vector<std::int32_t> added;
  std::vector<char> waiting;
};

// Returns the nodes that use each value, in order.
Groups usersOf(const Nodes &nodes, std::size_t valueCount) {
  Groups users;
  users.start.assign(valueCount + 1, 0);
  std::vector<std::int32_t> lastUser(valueCount, -1);
  auto eachUse = [&](const auto &visit) {
    std::fill(lastUser.begin(), lastUser.end(), -1);
    for (std::size_t node = 0; node < nodes.size(); ++node)
      for (const std::int32_t *value = nodes.begin(node); value != nodes.definitions(node); ++value) {
        std::int32_t &previous = lastUser.at(*value);
        if (std::exchange(previous, static_cast<std::int32_t>(node)) != static_cast<std::int32_t>(node))
          visit(*value, static_cast<std::int32_t>(node));
      }
  };
  eachUse([&](std::int32_t value, std::int32_t) { ++users.start[value + 1]; });
  for (std::size_t value = 0; value < valueCount; ++value)
    users.start[value + 1] += users.start[value];
  users.numbers.resize(users.start.back());
  // Advances each start to the next one, which avoids a copy of all starts.
  eachUse([&](std::int32_t value, std::int32_t node) { users.numbers[users.start[value]++] = node; });
  std::copy_backward(users.start.begin(), users.start.end() - 1, users.start.end());
  users.start.front() = 0;
  return users;
}

// Returns a flag for each kind, set for the kinds in `kinds`.
std::vector<char> flagsOf(const std::vector<std::int32_t> &kinds) {
  std::vector<char> flags;
  for (std::int32_t kind : kinds) {
    flags.resize(std::max(flags.size(), static_cast<std::size_t>(kind) + 1), 0);
    flags[kind] = 1;
  }
  return flags;
}

} // namespace

std::size_t Fixpoint::StatesHash::operator()(const States &states) const {
  std::size_t hash = states.size();
  for (std::int32_t state : states)
    hash = (hash ^ static_cast<std::size_t>(static_cast<std::uint32_t>(state))) * 0x9E3779B97F4A7C15ull;
  return hash;
}

Fixpoint::Fixpoint(const Nodes &nodes, const Nodes &boundary, std::size_t valueCount, std::int32_t constant,
                   const std::vector<std::int32_t> &tied, const std::vector<std::int32_t> &deferred,
                   const std::vector<std::int32_t> &loops, const std::vector<std::int32_t> &elsewhere)
    : nodes(nodes), boundary(boundary), constant(constant), isTied(valueCount, 0), definers(valueCount, -1),
      users(usersOf(nodes, valueCount)), deferredKinds(flagsOf(deferred)), loopKinds(flagsOf(loops)),
      elsewhereKinds(flagsOf(elsewhere)), settled(nodes.size(), nothing) {
  for (std::int32_t value : tied)
    isTied.at(value) = 1;
  for (std::size_t node = 0; node < nodes.size(); ++node)
    if (isOf(deferredKinds, static_cast<std::int32_t>(node)))
      deferredNodes.push_back(static_cast<std::int32_t>(node));
  for (std::size_t node = 0; node < nodes.size(); ++node)
    for (const std::int32_t *value = nodes.definitions(node); value != nodes.end(node); ++value) {
      if (*value == constant)
        continue;
      if (definers.at(*value) >= 0)
        throw std::invalid_argument("a value has one definition");
      definers[*value] = static_cast<std::int32_t>(node);
    }
}

void Fixpoint::unsettle(std::int32_t value) {
  if (definers[value] >= 0)
    settled[definers[value]] = nothing;
  for (const std::int32_t *user = users.begin(value); user != users.end(value); ++user)
    settled[*user] = nothing;
}

// Returns the states after the step from the states in `key`.
const std::optional<Fixpoint::States> &Fixpoint::stepped(const Step &step) {
  auto found = known.find(key);
  if (found != known.end())
    return found->second;
  const States before(key.begin(), key.end() - 1);
  std::optional<States> answer = step(key.back(), before);
  if (answer && answer->size() != before.size())
    throw std::invalid_argument("a step has to give a state for each value of its node");
  if (answer && *answer == before)
    answer.reset();
  return known.emplace(key, std::move(answer)).first->second;
}

void Fixpoint::run(std::int32_t *states, const std::vector<std::int32_t> &behaviours, const Step &step,
                   const Follow &follow, const Observe &observe) {
  for (std::size_t value = 0; value < valueCount(); ++value)
    if (states[value] != (last.empty() ? unknown : last[value]))
      unsettle(static_cast<std::int32_t>(value));

  // Steps through one node, and sets `changed` to the values whose definers and users must be visited again.
  std::vector<std::int32_t> changed;
  auto visit = [&](const Nodes &among, std::int32_t node, std::int32_t behaviour) {
    changed.clear();
    key.clear();
    for (const std::int32_t *value = among.begin(node); value != among.end(node); ++value)
      key.push_back(states[*value]);
    if (std::all_of(key.begin(), key.end(), [](std::int32_t state) { return state == unknown; }))
      return;
    key.push_back(behaviour);
    const std::optional<States> &after = stepped(step);
    if (!after)
      return;
    if (observe)
      observe(&among == &boundary ? -1 - node : node, behaviour, States(key.begin(), key.end() - 1));
    for (std::size_t i = 0; i < after->size(); ++i) {
      const std::int32_t value = among.begin(node)[i], state = (*after)[i];
      // A value that occurs twice in a node may change at one place and stay the same at the other.
      if (state == key[i] || value == constant)
        continue;
      states[value] = state;
      unsettle(value);
      changed.push_back(value);
      if (!isTied[value])
        continue;
      for (const Following &following : follow(value, state)) {
        if (following.value < 0 || static_cast<std::size_t>(following.value) >= valueCount())
          throw std::invalid_argument("a value that follows another one has to be one of them");
        if (following.onlyIfUnknown && states[following.value] != unknown)
          continue;
        states[following.value] = following.state;
        unsettle(following.value);
        if (following.visits)
          changed.push_back(following.value);
      }
    }
  };
  auto throughBoundary = [&] {
    for (std::size_t node = 0; node < boundary.size(); ++node)
      if (const std::int32_t behaviour = behaviours.at(boundary.kind(node)); behaviour != nothing)
        visit(boundary, static_cast<std::int32_t>(node), behaviour);
  };

  // Returns whether a user of the value that `definer` defines is in the loop of `definer`.
  auto isInLoop = [&](std::int32_t user, std::int32_t definer) {
    return definer >= 0 && isOf(loopKinds, definer) && user < definer && !isOf(elsewhereKinds, user);
  };

  throughBoundary();
  std::optional<Worklist> worklist(nodes.size());
  auto addDeferred = [&] {
    for (auto node = deferredNodes.rbegin(); node != deferredNodes.rend(); ++node)
      if (settled[*node] == nothing && behaviours.at(nodes.kind(*node)) != nothing)
        worklist->add(*node);
    return !worklist->empty();
  };
  while (!worklist->empty() || addDeferred()) {
    const std::int32_t number = worklist->pop();
    const std::int32_t behaviour = behaviours.at(nodes.kind(number));
    if (behaviour == nothing || settled[number] == behaviour)
      continue;
    visit(nodes, number, behaviour);
    if (changed.empty())
      settled[number] = behaviour;
    for (std::int32_t value : changed) {
      const std::int32_t definer = definers[value];
      auto addUsers = [&](bool inLoop) {
        for (const std::int32_t *user = users.end(value); user != users.begin(value);)
          if (*--user != number && !isOf(deferredKinds, *user) && isInLoop(*user, definer) == inLoop)
            worklist->add(*user);
      };
      addUsers(true);
      if (definer >= 0 && definer != number)
        worklist->add(definer);
      addUsers(false);
    }
  }
  worklist.reset(); // Frees memory before the states of all values are copied.
  throughBoundary();
  last.assign(states, states + valueCount());
}

} // namespace mlir_shard
