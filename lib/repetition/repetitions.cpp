// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "repetition/repetitions.h"

#include "ir/below.h"

#include <algorithm>
#include <numeric>

namespace mlir_shard {

Repetitions::Repetitions(const ModuleArrays &arrays, const std::vector<Ignored> &ignored,
                         const std::vector<bool> &kept)
    : arrays(arrays), capi(arrays.capi), regions(arrays), ends(regions.ends), kept(kept) {
  this->kept.resize(arrays.representatives.size());
  for (std::size_t op = 0; op < arrays.ops.size(); ++op)
    numbers.insert(arrays.ops[op].pointer, static_cast<std::int32_t>(op));
  findClasses(ignored);
  findConstants();
}

void Repetitions::findClasses(const std::vector<Ignored> &ignored) {
  classes.resize(arrays.representatives.size());
  std::iota(classes.begin(), classes.end(), 0);
  ignoresConstants.resize(classes.size());
  forms.resize(classes.size(), -1);
  if (classes.empty() || ignored.empty())
    return;
  Signatures withoutNames(capi, capi.mlirOperationGetContext(arrays.representatives.front()), {});
  std::vector<bool> ignoresSizes;
  for (std::size_t signature = 0; signature < classes.size(); ++signature) {
    const MlirOperation representative = arrays.representatives[signature];
    ignoresConstants[signature] = ignored.at(signature).constants;
    if (ignored[signature].name)
      classes[signature] = -1 - withoutNames.ofAnyName(representative);
    ignoresSizes.push_back(ignored[signature].sizes);
  }
  forms = arrays.formsOfAnySizes(ignoresSizes, {});
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

bool Repetitions::isKept(std::int32_t op, const std::int32_t *states) const {
  return kept[arrays.signatures[op]] && std::all_of(arrays.operands.begin(op), arrays.operands.end(op),
                                                    [&](std::int32_t value) { return states[value] < 0; });
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

bool Repetitions::isEven(std::int32_t value, std::int32_t state, const Shards &shards) {
  // A value without a state is replicated.
  if (state < 0)
    return true;
  auto found = shardsOf.find(state);
  if (found == shardsOf.end())
    found = shardsOf.emplace(state, shards(state)).first;
  const MlirType type = capi.mlirValueGetType(arrays.value(value));
  for (std::size_t dim = 0; dim < found->second.size(); ++dim)
    if (found->second[dim] > 1 && (!capi.mlirTypeIsARankedTensor(type) ||
                                   capi.mlirShapedTypeIsDynamicDim(type, static_cast<std::intptr_t>(dim)) ||
                                   capi.mlirShapedTypeGetDimSize(type, static_cast<std::intptr_t>(dim)) %
                                           found->second[dim] != 0))
      return false;
  return true;
}

// Returns whether all operands, in the states `states`, and all results, in the states `after`, have even shards.
bool Repetitions::hasEvenShards(std::int32_t op, const std::int32_t *states, const States &after,
                                const Shards &shards) {
  for (const std::int32_t *value = arrays.operands.begin(op); value != arrays.operands.end(op); ++value)
    if (!isEven(*value, states[*value], shards))
      return false;
  std::size_t index = 0;
  for (const std::int32_t *value = arrays.results.begin(op); value != arrays.results.end(op); ++value)
    if (!isEven(*value, after.at(index++), shards))
      return false;
  return true;
}

std::int32_t Repetitions::visit(std::int32_t first, std::int32_t context, std::int32_t *states, const Plan &plan,
                                const ContextKey &contextKey, const Shards &shards) {
  const auto setStates = [&](std::int32_t op, const States &after) {
    std::size_t index = 0;
    for (const std::int32_t *value = arrays.results.begin(op); value != arrays.results.end(op); ++value)
      states[*value] = after.at(index++);
  };
  const std::int32_t last = numberOf(lastInBlock(capi, capi.mlirOperationGetBlock(arrays.ops[first])));
  for (std::int32_t op = first; op != last; op = ends[op]) {
    if (isKept(op, states))
      continue;
    const std::int32_t form = forms[arrays.signatures[op]];
    readKey(op, context, states);
    if (form < 0)
      addContextKey(op, contextKey);
    if (const auto found = known.find(key); found != known.end()) {
      represented[found->second.op].push_back(op);
      setStates(op, found->second.states);
      continue;
    }
    Key own = key; // `plan` may visit the operations inside.
    Key sized;
    if (form >= 0) {
      sized = key;
      sized[1] = form;
      const auto found = knownForAnySizes.find(sized);
      if (found != knownForAnySizes.end() && hasEvenShards(op, states, found->second, shards)) {
        sharing.push_back(op);
        setStates(op, found->second);
        continue;
      }
    }
    std::optional<Planned> planned = plan(op);
    if (!planned)
      continue;
    setStates(op, planned->states);
    if (form >= 0 && planned->isForAnySizes)
      knownForAnySizes.emplace(std::move(sized), planned->states);
    known.emplace(std::move(own), Known{op, std::move(planned->states)});
  }
  return last;
}

MlirType Repetitions::localType(MlirType type, const std::vector<std::int64_t> &shards) const {
  std::vector<std::int64_t> shape;
  for (std::size_t dim = 0; dim < shards.size(); ++dim)
    shape.push_back(capi.mlirShapedTypeGetDimSize(type, static_cast<std::intptr_t>(dim)) / shards[dim]);
  return capi.mlirRankedTensorTypeGet(static_cast<std::intptr_t>(shape.size()), shape.data(),
                                      capi.mlirShapedTypeGetElementType(type),
                                      capi.mlirRankedTensorTypeGetEncoding(type));
}

void Repetitions::localize(const std::int32_t *states) {
  for (const std::int32_t op : sharing)
    for (const std::int32_t *value = arrays.results.begin(op); value != arrays.results.end(op); ++value) {
      const auto found = shardsOf.find(states[*value]);
      const auto isSharded = [](std::int64_t count) { return count > 1; };
      if (found != shardsOf.end() && std::any_of(found->second.begin(), found->second.end(), isSharded))
        capi.mlirValueSetType(arrays.value(*value),
                              localType(capi.mlirValueGetType(arrays.value(*value)), found->second));
    }
  sharing.clear();
}

const std::vector<std::int32_t> &Repetitions::representedBy(std::int32_t op) const {
  static const std::vector<std::int32_t> none;
  const auto found = represented.find(op);
  return found == represented.end() ? none : found->second;
}

std::int32_t Repetitions::numberOf(MlirOperation op) const { return numbers.find(op.pointer); }

} // namespace mlir_shard
