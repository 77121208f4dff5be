// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "rewriting/deferral.h"

#include "ir/below.h"
#include "rewriting/replacement.h"

#include <algorithm>

namespace mlir_shard {

GroupMerger::Key GroupMerger::keyOf(const std::vector<MlirOperation> &ops) {
  Key key;
  std::vector<const void *> values;
  for (MlirOperation op : ops) {
    key.push_back(signatures.of(op));
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i) {
      const void *value = capi.mlirOperationGetOperand(op, i).pointer;
      const auto same = std::find(values.begin(), values.end(), value);
      key.push_back(static_cast<std::int32_t>(same - values.begin()));
      values.push_back(value);
    }
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i)
      key.push_back(static_cast<bool>(capi.mlirValueGetFirstUse(capi.mlirOperationGetResult(op, i))));
  }
  return key;
}

void GroupMerger::merge(const std::vector<MlirOperation> &ops, MlirOperation before) {
  if (capi.mlirOperationGetFirstRegion(ops.front())) {
    joinOperations(capi, ops, before);
    return;
  }
  const Key key = keyOf(ops);
  const MlirOperation placeholder = placeholderFor(capi, ops, before);
  const auto [known, isNew] = templates.try_emplace(key);
  if (known->second) {
    known->second->replay(placeholder);
  } else if (!isNew) {
    pack(ops, placeholder);
  } else {
    auto rewrite = std::make_unique<RewriteTemplate>(capi, placeholder);
    pack(ops, placeholder);
    if (rewrite->capture())
      known->second = std::move(rewrite);
  }
  for (MlirOperation op : ops)
    capi.mlirOperationDestroy(op);
}

bool Deferral::run(const std::vector<Mergeable> &mergeables) {
  std::unordered_map<std::int32_t, std::int32_t> kinds;
  PointerMap numbers;
  for (std::size_t i = 0; i < mergeables.size(); ++i) {
    kinds.emplace(mergeables[i].kind, static_cast<std::int32_t>(kinds.size()));
    numbers.insert(mergeables[i].op.pointer, static_cast<std::int32_t>(i));
  }
  if (kinds.size() == mergeables.size())
    return false;
  words = (kinds.size() + 63) / 64;
  groups.assign(kinds.size(), {});
  deferredFor.assign(kinds.size(), {});
  deferred.clear();
  needs = {};
  needSets.clear();
  isChanged = false;
  std::vector<MlirOperation> ops;
  for (MlirOperation op = capi.mlirBlockGetFirstOperation(capi.mlirOperationGetBlock(mergeables.front().op)); op;
       op = capi.mlirOperationGetNextInBlock(op))
    ops.push_back(op);
  KindSet needed;
  for (MlirOperation op : ops) {
    needed.assign(words, 0);
    const bool isNeeding = addNeeded(op, needed);
    if (const std::int32_t number = numbers.find(op.pointer); number != PointerMap::absent) {
      if (isNeeding)
        flush(needed, op);
      wait(mergeables[number], kinds.at(mergeables[number].kind));
    } else if (isNeeding && canWait(op)) {
      defer(op, needed);
    } else if (isNeeding) {
      flush(needed, op);
    }
  }
  return isChanged;
}

// Adds to `needed` the kinds that the operands of an operation and of its nested operations wait for. Returns whether
// there are any.
bool Deferral::addNeeded(MlirOperation op, KindSet &needed) const {
  bool isAny = false;
  const auto visit = [&](MlirOperation one) {
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(one); i < count; ++i) {
      const std::int32_t set = needs.find(capi.mlirOperationGetOperand(one, i).pointer);
      if (set == PointerMap::absent)
        continue;
      isAny = true;
      for (std::size_t word = 0; word < words; ++word)
        needed[word] |= needSets[set][word];
    }
  };
  visit(op);
  eachBelow(capi, op, false, visit);
  return isAny;
}

// Returns whether an operation only computes results from its operands, and none of these values is in memory.
bool Deferral::canWait(MlirOperation op) {
  const auto isInMemory = [&](MlirValue value) {
    const MlirType type = capi.mlirValueGetType(value);
    return capi.mlirTypeIsAMemRef(type) || capi.mlirTypeIsAUnrankedMemRef(type);
  };
  const std::intptr_t results = capi.mlirOperationGetNumResults(op);
  for (std::intptr_t i = 0; i < results; ++i)
    if (isInMemory(capi.mlirOperationGetResult(op, i)))
      return false;
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i)
    if (isInMemory(capi.mlirOperationGetOperand(op, i)))
      return false;
  bool mayAll = results > 0 && hasWaitingName(op);
  eachBelow(capi, op, false, [&](MlirOperation inner) { mayAll = mayAll && hasWaitingName(inner); });
  return mayAll;
}

bool Deferral::hasWaitingName(MlirOperation op) {
  const MlirIdentifier name = capi.mlirOperationGetName(op);
  auto known = names.find(name.pointer);
  if (known == names.end())
    known = names.emplace(name.pointer, mayWait(toView(capi.mlirIdentifierStr(name)))).first;
  return known->second;
}

void Deferral::wait(const Mergeable &one, std::int32_t kind) {
  KindSet own(words, 0);
  own[kind / 64] |= std::uint64_t{1} << kind % 64;
  if (!groups[kind].ops.empty() && groups[kind].size + one.size > most)
    flush(own, one.op);
  Group &group = groups[kind];
  if (group.ops.empty())
    group = {{}, 0, begun++};
  group.ops.push_back(one.op);
  group.size += one.size;
  setNeeds(one.op, &own);
}

void Deferral::defer(MlirOperation op, const KindSet &needed) {
  for (std::size_t kind = 0; kind < groups.size(); ++kind)
    if (needed[kind / 64] >> kind % 64 & 1)
      deferredFor[kind].push_back(deferred.size());
  deferred.push_back({op, needed});
  setNeeds(op, &needed);
}

// Sets the kinds that the results of an operation wait for; null for none.
void Deferral::setNeeds(MlirOperation op, const KindSet *needed) {
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i) {
    const void *value = capi.mlirOperationGetResult(op, i).pointer;
    if (needed)
      needSets.push_back(*needed);
    needs.set(value, needed ? static_cast<std::int32_t>(needSets.size()) - 1 : PointerMap::absent);
  }
}

// Moves or merges the waiting operations of the flushed kinds before an operation, and then moves the operations that
// waited for no other kind.
void Deferral::flush(const KindSet &flushed, MlirOperation before) {
  std::vector<std::size_t> begunKinds, candidates;
  for (std::size_t kind = 0; kind < groups.size(); ++kind) {
    if (!(flushed[kind / 64] >> kind % 64 & 1) || groups[kind].ops.empty())
      continue;
    begunKinds.push_back(kind);
    candidates.insert(candidates.end(), deferredFor[kind].begin(), deferredFor[kind].end());
    deferredFor[kind].clear();
  }
  std::sort(begunKinds.begin(), begunKinds.end(),
            [&](std::size_t one, std::size_t other) { return groups[one].number < groups[other].number; });
  for (std::size_t kind : begunKinds) {
    const std::vector<MlirOperation> ops = std::move(groups[kind].ops);
    groups[kind].ops.clear();
    for (MlirOperation op : ops)
      setNeeds(op, nullptr);
    if (ops.size() > 1) {
      merger.merge(ops, before);
      isChanged = true;
    }
  }
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  for (std::size_t number : candidates) {
    Waiting &one = deferred[number];
    bool isLeft = false;
    for (std::size_t word = 0; word < words; ++word) {
      one.needed[word] &= ~flushed[word];
      isLeft = isLeft || one.needed[word];
    }
    setNeeds(one.op, isLeft ? &one.needed : nullptr);
    if (!isLeft) {
      capi.mlirOperationMoveBefore(one.op, before);
      isChanged = true;
    }
  }
}

} // namespace mlir_shard
