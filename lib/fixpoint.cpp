// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fixpoint.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace mlir_shard {
namespace {

struct StatesHash {
  std::size_t operator()(const Fixpoint::States &states) const {
    std::size_t hash = states.size();
    for (std::int32_t state : states)
      hash = (hash ^ static_cast<std::size_t>(static_cast<std::uint32_t>(state))) * 0x9E3779B97F4A7C15ull;
    return hash;
  }
};

// A step that is asked once for each distinct input.
class RememberedStep {
public:
  explicit RememberedStep(const Fixpoint::Step &step) : step(step) {}

  const std::optional<Fixpoint::States> &operator()(std::int32_t kind, const Fixpoint::States &before) {
    key = before;
    key.push_back(kind);
    auto found = known.find(key);
    if (found != known.end())
      return found->second;
    std::optional<Fixpoint::States> answer = step(kind, before);
    if (answer && answer->size() != before.size())
      throw std::invalid_argument("a step has to give a state for each value of its node");
    key = before;
    key.push_back(kind);
    return known.emplace(key, std::move(answer)).first->second;
  }

private:
  const Fixpoint::Step &step;
  Fixpoint::States key;
  std::unordered_map<Fixpoint::States, std::optional<Fixpoint::States>, StatesHash> known;
};

// The numbers of nodes, each in it at most once; the last added comes first.
class Worklist {
public:
  explicit Worklist(std::size_t count) : waiting(count, 1) {
    for (std::size_t number = count; number-- > 0;)
      stack.push_back(static_cast<std::int32_t>(number));
  }

  bool empty() const { return stack.empty(); }

  std::int32_t pop() {
    const std::int32_t number = stack.back();
    stack.pop_back();
    waiting[number] = 0;
    return number;
  }

  void add(std::int32_t number) {
    if (waiting[number])
      return;
    waiting[number] = 1;
    stack.push_back(number);
  }

private:
  std::vector<std::int32_t> stack;
  std::vector<char> waiting;
};

} // namespace

Fixpoint::Fixpoint(std::size_t valueCount, std::int32_t constant, const std::vector<std::int32_t> &tied)
    : constant(constant), isTied(valueCount, 0), definers(valueCount, -1), users(valueCount) {
  for (std::int32_t value : tied)
    isTied.at(value) = 1;
}

void Fixpoint::add(std::int32_t kind, const std::vector<std::int32_t> &uses,
                   const std::vector<std::int32_t> &definitions) {
  const auto number = static_cast<std::int32_t>(nodes.size());
  for (std::int32_t value : uses) {
    std::vector<std::int32_t> &others = users.at(value);
    if (others.empty() || others.back() != number)
      others.push_back(number);
  }
  for (std::int32_t value : definitions) {
    if (value == constant)
      continue;
    if (definers.at(value) >= 0)
      throw std::invalid_argument("a value has one definition");
    definers[value] = number;
  }
  Node node{kind, uses};
  node.values.insert(node.values.end(), definitions.begin(), definitions.end());
  nodes.push_back(std::move(node));
}

void Fixpoint::run(States &states, const Step &step, const Follow &follow) const {
  if (states.size() != definers.size())
    throw std::invalid_argument("there has to be a state for each value");
  RememberedStep remembered(step);
  Worklist worklist(nodes.size());
  States before;
  std::vector<std::int32_t> changed;
  while (!worklist.empty()) {
    const std::int32_t number = worklist.pop();
    const Node &node = nodes[number];
    before.clear();
    for (std::int32_t value : node.values)
      before.push_back(states[value]);
    if (std::all_of(before.begin(), before.end(), [](std::int32_t state) { return state == unknown; }))
      continue;
    const std::optional<States> &after = remembered(node.kind, before);
    if (!after)
      continue;
    changed.clear();
    for (std::size_t i = 0; i < node.values.size(); ++i) {
      const std::int32_t value = node.values[i], state = (*after)[i];
      // A value that the node has twice may change in one place and stay in the other.
      if (state == before[i] || value == constant)
        continue;
      states[value] = state;
      changed.push_back(value);
      if (!isTied[value])
        continue;
      for (const Following &following : follow(value, state)) {
        if (following.onlyIfUnknown && states.at(following.value) != unknown)
          continue;
        states.at(following.value) = following.state;
        if (following.visits)
          changed.push_back(following.value);
      }
    }
    for (std::int32_t value : changed) {
      if (definers[value] >= 0 && definers[value] != number)
        worklist.add(definers[value]);
      for (auto user = users[value].rbegin(); user != users[value].rend(); ++user)
        if (*user != number)
          worklist.add(*user);
    }
  }
}

} // namespace mlir_shard
