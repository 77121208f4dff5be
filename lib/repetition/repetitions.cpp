// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "repetition/repetitions.h"

#include "ir/below.h"

#include <algorithm>
#include <numeric>

namespace mlir_shard {

Repetitions::Repetitions(const ModuleArrays &arrays, const std::vector<std::pair<bool, bool>> &ignored)
    : arrays(arrays), capi(arrays.capi), regions(arrays), ends(regions.ends) {
  for (std::size_t op = 0; op < arrays.ops.size(); ++op)
    numbers.insert(arrays.ops[op].pointer, static_cast<std::int32_t>(op));
  findClasses(ignored);
  findConstants();
}

void Repetitions::findClasses(const std::vector<std::pair<bool, bool>> &ignored) {
  classes.resize(arrays.representatives.size());
  std::iota(classes.begin(), classes.end(), 0);
  ignoresConstants.resize(classes.size());
  if (classes.empty() || ignored.empty())
    return;
  Signatures withoutNames(capi, capi.mlirOperationGetContext(arrays.representatives.front()), {});
  for (std::size_t signature = 0; signature < classes.size(); ++signature) {
    const auto [ignoresName, ignores] = ignored.at(signature);
    ignoresConstants[signature] = ignores;
    if (ignoresName)
      classes[signature] = -1 - withoutNames.ofAnyName(arrays.representatives[signature]);
  }
}

void Repetitions::findConstants() {
  constants.assign(arrays.values.size(), -1);
  std::unordered_map<Key, std::int32_t, NumbersHash> made;
  for (std::size_t number = 0; number < arrays.ops.size(); ++number) {
    const auto op = static_cast<std::int32_t>(number);
    if (arrays.results.begin(op) == arrays.results.end(op))
      continue;
    Key key{arrays.signatures[op]};
    for (const std::int32_t *value = arrays.operands.begin(op); value != arrays.operands.end(op); ++value)
      key.push_back(constants[*value]);
    if (std::find(key.begin() + 1, key.end(), -1) != key.end())
      continue;
    // A fill is a constant too; its region determines its value.
    if (ends[op] > op + 1)
      regions.add(op, key);
    // Results of one operation have consecutive numbers.
    std::int32_t constant = made.emplace(std::move(key), static_cast<std::int32_t>(number)).first->second;
    constant = *arrays.results.begin(constant);
    for (const std::int32_t *value = arrays.results.begin(op); value != arrays.results.end(op); ++value)
      constants[*value] = constant++;
  }
}

void Repetitions::readKey(std::int32_t op, std::int32_t context, const std::int32_t *states) {
  const std::int32_t signature = arrays.signatures[op];
  key.assign({context, classes[signature]});
  const std::int32_t *const first = arrays.operands.begin(op), *const end = arrays.operands.end(op);
  for (const std::int32_t *value = first; value != end; ++value) {
    const auto same = static_cast<std::int32_t>(std::find(first, value, *value) - first);
    key.insert(key.end(), {states[*value], same, ignoresConstants[signature] ? -1 : constants[*value]});
  }
  for (const std::int32_t *value = arrays.results.begin(op); value != arrays.results.end(op); ++value)
    key.push_back(states[*value]);
  if (capi.mlirOperationGetFirstRegion(arrays.ops[op]))
    regions.add(op, key);
}

void Repetitions::addContextKey(std::int32_t op, const ContextKey &contextKey) {
  const std::int32_t ofSignature = classes[arrays.signatures[op]];
  if (withoutContextKey.count(ofSignature))
    return;
  if (const std::optional<std::int32_t> found = contextKey(op))
    key.push_back(*found);
  else
    withoutContextKey.insert(ofSignature);
}

std::int32_t Repetitions::visit(std::int32_t first, std::int32_t context, std::int32_t *states, const Plan &plan,
                                const ContextKey &contextKey) {
  const std::int32_t last = numberOf(lastInBlock(capi, capi.mlirOperationGetBlock(arrays.ops[first])));
  for (std::int32_t op = first; op != last; op = ends[op]) {
    readKey(op, context, states);
    addContextKey(op, contextKey);
    auto found = known.find(key);
    if (found != known.end()) {
      represented[found->second.op].push_back(op);
    } else {
      Key own = key; // `plan` may visit the operations inside.
      std::optional<std::vector<std::int32_t>> after = plan(op);
      if (!after)
        continue;
      found = known.emplace(std::move(own), Known{op, std::move(*after)}).first;
    }
    std::size_t index = 0;
    for (const std::int32_t *value = arrays.results.begin(op); value != arrays.results.end(op); ++value)
      states[*value] = found->second.states.at(index++);
  }
  return last;
}

const std::vector<std::int32_t> &Repetitions::representedBy(std::int32_t op) const {
  static const std::vector<std::int32_t> none;
  const auto found = represented.find(op);
  return found == represented.end() ? none : found->second;
}

std::int32_t Repetitions::numberOf(MlirOperation op) const { return numbers.find(op.pointer); }

} // namespace mlir_shard
