// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "repetition/sharded_ops.h"

#include "arrays/region_contents.h"

#include <utility>

namespace mlir_shard {

ShardedOps::ShardedOps(ModuleArrays &arrays, const std::vector<std::int32_t> &ops,
                       const std::unordered_map<std::int32_t, std::int32_t> &tags, std::vector<std::int32_t> forms)
    : kinds(arrays.ops.size(), -1), arrays(arrays), kept(arrays, std::move(forms)) {
  const RegionContents regions(arrays);
  std::unordered_map<Key, std::int32_t, NumbersHash> known;
  Key key;
  for (std::int32_t op : ops) {
    const auto tag = tags.find(op);
    key.assign({arrays.signatures.at(op), tag == tags.end() ? 0 : tag->second});
    if (regions.ends[op] > op + 1)
      regions.add(op, key);
    const auto [place, isNew] = known.emplace(key, static_cast<std::int32_t>(known.size()));
    if (isNew) {
      representatives.push_back(op);
      hasTag.push_back(key[1] != 0);
    }
    kinds[op] = place->second;
  }
}

void ShardedOps::addNumbers(std::int32_t op, const std::int32_t *numbers, Key &key) const {
  key.push_back(kinds[op]);
  for (const Groups *group : {&arrays.operands, &arrays.results})
    for (const std::int32_t *value = group->begin(op); value != group->end(op); ++value)
      key.push_back(numbers[*value]);
}

void ShardedOps::keep(std::int32_t op, const std::int32_t *numbers, KeptForm form) {
  if (!hasTag[kinds[op]])
    kept.add(op, numbers, std::move(form));
}

bool ShardedOps::isKept(std::int32_t op, const std::int32_t *numbers) {
  return !hasTag[kinds[op]] && kept.isKept(op, numbers);
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
    const Visited visited = found != known.end()  ? Visited{found->second, true}
                            : isKept(op, numbers) ? Visited{nullptr, true}
                                                  : visit(op);
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

// The operands and results at which operations are resharded, computed once for each equivalence class.
class ShardedOps::Resharded {
public:
  Resharded(ShardedOps &ops, const std::int32_t *numbers, const std::vector<Use> &uses,
            const std::vector<std::int32_t> &returned, const WhereResharded &whereResharded)
      : ops(ops), arrays(ops.arrays), numbers(numbers), uses(uses), returned(returned),
        whereResharded(whereResharded) {}

  Use useOf(std::int32_t op) const {
    const std::int32_t kind = ops.kinds[op];
    return kind < 0 ? Use::Ignored : uses.at(kind);
  }

  // Returns whether a result of an operation is resharded, after the operation or for a user.
  bool hasResult(std::int32_t op) {
    const auto count = static_cast<std::int32_t>(arrays.operands.end(op) - arrays.operands.begin(op));
    for (const std::int32_t *value = arrays.results.begin(op); value != arrays.results.end(op); ++value) {
      bool isResharded = isAt(op, count + static_cast<std::int32_t>(value - arrays.results.begin(op)));
      arrays.eachUse(*value, [&](std::int32_t user, std::int32_t operand) {
        isResharded = isResharded || hasOperand(user, operand, numbers[*value]);
      });
      if (isResharded)
        return true;
    }
    return false;
  }

private:
  bool hasOperand(std::int32_t user, std::int32_t operand, std::int32_t number) {
    switch (useOf(user)) {
    case Use::Ignored:
      return false;
    case Use::Weighed:
      return isAt(user, operand);
    case Use::Reshards:
      return isOther(numbers[*arrays.results.begin(user)], number);
    case Use::Returns:
      return isOther(returned.at(operand), number);
    }
    return true;
  }

  static bool isOther(std::int32_t wanted, std::int32_t number) { return wanted && wanted != number; }

  bool isAt(std::int32_t op, std::int32_t place) {
    key.clear();
    ops.addNumbers(op, numbers, key);
    auto found = known.find(key);
    if (found == known.end())
      found = known.emplace(key, ops.isKept(op, numbers) ? std::vector<bool>{} : whereResharded(op)).first;
    return !found->second.empty() && found->second.at(place);
  }

  ShardedOps &ops;
  ModuleArrays &arrays;
  const std::int32_t *numbers;
  const std::vector<Use> &uses;
  const std::vector<std::int32_t> &returned;
  const WhereResharded &whereResharded;
  std::unordered_map<Key, std::vector<bool>, NumbersHash> known;
  Key key;
};

std::vector<std::int32_t> ShardedOps::settle(const std::vector<std::int32_t> &ops, std::int32_t *numbers,
                                             const std::vector<Use> &uses, const std::vector<std::int32_t> &returned,
                                             const WhereResharded &whereResharded,
                                             const std::function<void(std::int32_t)> &settle) {
  Resharded resharded(*this, numbers, uses, returned, whereResharded);
  std::unordered_map<Key, Key, NumbersHash> known;
  std::vector<std::int32_t> changed;
  Key key, before, after;
  auto read = [&](std::int32_t op, Key &into) {
    into.clear();
    for (const std::int32_t *value = arrays.results.begin(op); value != arrays.results.end(op); ++value)
      into.push_back(numbers[*value]);
  };
  for (std::int32_t op : ops) {
    if (resharded.useOf(op) != Use::Weighed || !resharded.hasResult(op))
      continue;
    key.clear();
    addNumbers(op, numbers, key);
    for (const std::int32_t *value = arrays.results.begin(op); value != arrays.results.end(op); ++value) {
      key.push_back(-1);
      arrays.eachUse(*value, [&](std::int32_t user, std::int32_t operand) {
        const Use use = resharded.useOf(user);
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
