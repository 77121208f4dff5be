// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "repetition/sharded_ops.h"

#include "arrays/region_contents.h"

#include <utility>

namespace mlir_shard {

ShardedOps::ShardedOps(ModuleArrays &arrays, const std::vector<std::int32_t> &ops,
                       const std::unordered_map<std::int32_t, std::int32_t> &tags)
    : kinds(arrays.ops.size(), -1), arrays(arrays) {
  const RegionContents regions(arrays);
  std::unordered_map<Key, std::int32_t, NumbersHash> known;
  Key key;
  for (std::int32_t op : ops) {
    const auto tag = tags.find(op);
    key.assign({arrays.signatures.at(op), tag == tags.end() ? 0 : tag->second});
    if (regions.ends[op] > op + 1)
      regions.add(op, key);
    const auto [place, isNew] = known.emplace(key, static_cast<std::int32_t>(known.size()));
    if (isNew)
      representatives.push_back(op);
    kinds[op] = place->second;
  }
}

void ShardedOps::addNumbers(std::int32_t op, const std::int32_t *numbers, Key &key) const {
  key.push_back(kinds[op]);
  for (const Groups *group : {&arrays.operands, &arrays.results})
    for (const std::int32_t *value = group->begin(op); value != group->end(op); ++value)
      key.push_back(numbers[*value]);
}

std::vector<std::int32_t> ShardedOps::alike(const std::vector<std::int32_t> &ops, const std::int32_t *numbers) const {
  std::unordered_map<Key, std::int32_t, NumbersHash> firsts;
  std::vector<std::int32_t> found;
  Key key;
  for (std::int32_t op : ops) {
    key.clear();
    addNumbers(op, numbers, key);
    found.push_back(firsts.emplace(key, op).first->second);
  }
  return found;
}

std::vector<std::int32_t> ShardedOps::visit(const std::vector<std::int32_t> &ops, std::int32_t *numbers,
                                            const std::function<Visited(std::int32_t)> &visit) {
  std::unordered_map<Key, std::shared_ptr<const Insertion>, NumbersHash> known;
  std::vector<std::int32_t> attributed;
  Key key;
  for (std::int32_t op : ops) {
    key.clear();
    addNumbers(op, numbers, key);
    const auto found = known.find(key);
    const Visited visited = found == known.end() ? visit(op) : Visited{found->second, true};
    if (found == known.end() && visited.isAll)
      known.emplace(key, visited.insertion);
    if (!visited.insertion)
      continue;
    visited.insertion->insertAround(arrays.capi, arrays.ops[op], arrays.made);
    if (!visited.insertion->attributes.empty())
      attributed.push_back(op);
    for (const auto &[result, number] : visited.insertion->numbers)
      numbers[*(arrays.results.begin(op) + result)] = number;
  }
  return attributed;
}

std::vector<std::int32_t> ShardedOps::settle(const std::vector<std::int32_t> &ops, std::int32_t *numbers,
                                             const std::vector<Use> &uses, const std::vector<std::int32_t> &returned,
                                             const std::function<void(std::int32_t)> &settle) {
  std::unordered_map<Key, Key, NumbersHash> known;
  std::vector<std::int32_t> changed;
  Key key, before, after;
  auto read = [&](std::int32_t op, Key &into) {
    into.clear();
    for (const std::int32_t *value = arrays.results.begin(op); value != arrays.results.end(op); ++value)
      into.push_back(numbers[*value]);
  };
  for (std::int32_t op : ops) {
    key.clear();
    addNumbers(op, numbers, key);
    for (const std::int32_t *value = arrays.results.begin(op); value != arrays.results.end(op); ++value) {
      key.push_back(-1);
      arrays.eachUse(*value, [&](std::int32_t user, std::int32_t operand) {
        const std::int32_t kind = kinds[user];
        const Use use = kind < 0 ? Use::Ignored : uses.at(kind);
        key.push_back(-2 - static_cast<std::int32_t>(use));
        if (use == Use::Returns) {
          key.push_back(returned.at(operand));
        } else if (use == Use::Reshards) {
          key.push_back(numbers[*arrays.results.begin(user)]);
        } else if (use == Use::Weighed) {
          key.push_back(operand);
          addNumbers(user, numbers, key);
        }
      });
    }
    read(op, before);
    const auto place = known.find(key);
    if (place == known.end()) {
      settle(op);
      read(op, after);
      known.emplace(key, after);
    } else {
      std::size_t index = 0;
      for (const std::int32_t *value = arrays.results.begin(op); value != arrays.results.end(op); ++value)
        numbers[*value] = place->second[index++];
      after = place->second;
    }
    if (after != before)
      changed.push_back(op);
  }
  return changed;
}

} // namespace mlir_shard
