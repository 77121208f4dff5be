// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fixpoint.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace mlir_shard {

Fixpoint::Fixpoint(std::size_t valueCount, Step step)
    : step(std::move(step)), definers(valueCount, -1), users(valueCount) {}

void Fixpoint::add(std::int32_t kind, const std::vector<std::int32_t> &uses,
                   const std::vector<std::int32_t> &definitions) {
  const auto number = static_cast<std::int32_t>(nodes.size());
  for (std::int32_t value : uses) {
    std::vector<std::int32_t> &others = users.at(value);
    if (others.empty() || others.back() != number)
      others.push_back(number);
  }
  for (std::int32_t value : definitions) {
    if (definers.at(value) >= 0)
      throw std::invalid_argument("a value has one definition");
    definers[value] = number;
  }
  Node node{kind, uses};
  node.values.insert(node.values.end(), definitions.begin(), definitions.end());
  nodes.push_back(std::move(node));
}

std::size_t Fixpoint::StatesHash::operator()(const States &states) const {
  std::size_t hash = states.size();
  for (std::int32_t state : states)
    hash = (hash ^ static_cast<std::size_t>(static_cast<std::uint32_t>(state))) * 0x9E3779B97F4A7C15ull;
  return hash;
}

// What the node's values become; the same question has the same answer, and is put once.
const std::optional<Fixpoint::States> &Fixpoint::after(const Node &node, const States &states) {
  States key;
  key.reserve(node.values.size() + 1);
  for (std::int32_t value : node.values)
    key.push_back(states[value]);
  key.push_back(node.kind);
  auto found = known.find(key);
  if (found != known.end())
    return found->second;
  States before(key.begin(), key.end() - 1);
  std::optional<States> answer = step(node.kind, before);
  if (answer && answer->size() != before.size())
    throw std::invalid_argument("a step has to give a state for each value of its node");
  return known.emplace(std::move(key), std::move(answer)).first->second;
}

void Fixpoint::run(States &states) {
  if (states.size() != definers.size())
    throw std::invalid_argument("there has to be a state for each value");
  std::vector<std::int32_t> stack;
  std::vector<char> waiting(nodes.size(), 1);
  for (std::size_t number = nodes.size(); number-- > 0;)
    stack.push_back(static_cast<std::int32_t>(number));
  auto touch = [&](std::int32_t number, std::int32_t by) {
    if (number >= 0 && number != by && !waiting[number]) {
      waiting[number] = 1;
      stack.push_back(number);
    }
  };
  States before;
  while (!stack.empty()) {
    const std::int32_t number = stack.back();
    stack.pop_back();
    if (!waiting[number])
      continue;
    waiting[number] = 0;
    const Node &node = nodes[number];
    if (std::all_of(node.values.begin(), node.values.end(),
                    [&](std::int32_t value) { return states[value] == unknown; }))
      continue;
    const std::optional<States> &next = after(node, states);
    if (!next)
      continue;
    before.clear();
    for (std::int32_t value : node.values)
      before.push_back(states[value]);
    std::vector<std::int32_t> changed;
    for (std::size_t i = 0; i < node.values.size(); ++i) {
      const std::int32_t value = node.values[i];
      // A value that the node has twice may change in one place and stay in the other.
      if ((*next)[i] != before[i] && (*next)[i] != states[value]) {
        states[value] = (*next)[i];
        changed.push_back(value);
      }
    }
    for (std::int32_t value : changed) {
      touch(definers[value], number);
      for (auto user = users[value].rbegin(); user != users[value].rend(); ++user)
        touch(*user, number);
    }
  }
}

} // namespace mlir_shard
