// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "rewriting/expressions.h"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace mlir_shard {

ExpressionSplitter::ExpressionSplitter(ModuleArrays &arrays, std::vector<ExpressionKind> kinds)
    : arrays(arrays), capi(arrays.capi), kinds(std::move(kinds)), ends(arrays.ops.size()),
      scalarResults(arrays.representatives.size()), parts(arrays.ops.size()),
      usedAsScalar(arrays.ops.size()), shared(arrays.ops.size()), lastUse(arrays.ops.size(), -1),
      seen(arrays.ops.size()), copies(arrays.values.size()), copiedFor(arrays.values.size()) {
  if (this->kinds.size() != arrays.representatives.size())
    throw std::invalid_argument("there has to be a kind for each signature");
  for (std::size_t signature = 0; signature < this->kinds.size(); ++signature)
    if (this->kinds[signature] == ExpressionKind::Group)
      groupNames.push_back(capi.mlirOperationGetName(arrays.representatives[signature]).pointer);
  for (auto op = static_cast<std::int32_t>(ends.size()) - 1; op >= 0; --op) {
    ends[op] = std::max(ends[op], op + 1);
    if (const std::int32_t parent = arrays.parents[op]; parent >= 0)
      ends[parent] = std::max(ends[parent], ends[op]);
  }
}

std::vector<std::vector<std::int32_t>> ExpressionSplitter::scopes() const {
  std::vector<std::vector<std::int32_t>> found;
  std::vector<std::int32_t> open;
  const auto closeUpTo = [&](std::int32_t op) {
    for (; !open.empty() && ends[open.back()] <= op; open.pop_back())
      found.back().push_back(open.back());
  };
  const auto count = static_cast<std::int32_t>(ends.size());
  for (std::int32_t op = 0; op < count; ++op) {
    if (arrays.parents[op] >= 0 && kind(op) != ExpressionKind::Computation)
      continue;
    closeUpTo(op);
    if (arrays.parents[op] < 0)
      found.emplace_back();
    open.push_back(op);
  }
  closeUpTo(count);
  return found;
}

bool ExpressionSplitter::split(std::int32_t scope, const Questions &questions) {
  const Scope found = find(scope, questions);
  const Groups ops = needed(found, questions);
  markShared(found, questions);
  for (std::size_t use = 0; use < found.uses.size(); ++use) {
    ++useCount;
    for (const std::int32_t *op = ops.begin(use); op != ops.end(use); ++op)
      if (lastUse[*op] == static_cast<std::int32_t>(use) && !shared[*op])
        keep(*op, found, questions);
      else
        copy(*op, found, questions);
    const auto &[user, position, value] = found.uses[use];
    if (copiedFor[value] == useCount)
      capi.mlirOperationSetOperand(arrays.ops[user], position, copies[value]);
  }
  // Users are erased before the operations that define their operands.
  std::for_each(found.expansions.rbegin(), found.expansions.rend(), [&](std::int32_t op) { eraseUnused(op); });
  std::for_each(found.constants.rbegin(), found.constants.rend(), [&](std::int32_t op) { eraseUnused(op); });
  return found.hasOther;
}

ExpressionSplitter::Scope ExpressionSplitter::find(std::int32_t scope, const Questions &questions) {
  Scope found;
  const auto after = [&](std::int32_t op) { return kind(op) == ExpressionKind::Computation ? ends[op] : op + 1; };
  for (std::int32_t op = scope + 1; op < ends.at(scope); op = after(op)) {
    if (kind(op) == ExpressionKind::Group) {
      found.groups[arrays.definers[*arrays.operands.begin(op)]].push_back(op);
      continue;
    }
    found.hasOther |= kind(op) == ExpressionKind::Other;
    parts[op] = partOf(op, questions);
    if (parts[op] == Part::Constant)
      found.constants.push_back(op);
    else if (parts[op] == Part::Expansion)
      found.expansions.push_back(op);
    else
      addUses(op, found, questions);
  }
  return found;
}

ExpressionSplitter::Part ExpressionSplitter::partOf(std::int32_t op, const Questions &questions) {
  const ExpressionKind what = kind(op);
  if (what == ExpressionKind::Constant)
    return Part::Constant;
  if (what == ExpressionKind::Other || what == ExpressionKind::Terminator)
    return Part::None;
  if ((what == ExpressionKind::Computation || what == ExpressionKind::Call) && !questions.preserves(op))
    return Part::None;
  const auto isConstant = [&](std::int32_t value) {
    const std::int32_t definer = arrays.definers[value];
    return definer >= 0 && parts[definer] == Part::Constant;
  };
  if (std::all_of(arrays.operands.begin(op), arrays.operands.end(op), isConstant))
    return what == ExpressionKind::AskedEach && !questions.preserves(op) ? Part::None : Part::Constant;
  const bool isExpansion =
      what == ExpressionKind::Expansion &&
      std::all_of(arrays.operands.begin(op), arrays.operands.end(op),
                  [&](std::int32_t value) { return isConstant(value) || isScalar(value, questions); });
  return isExpansion ? Part::Expansion : Part::None;
}

void ExpressionSplitter::addUses(std::int32_t op, Scope &found, const Questions &questions) {
  for (const std::int32_t *value = arrays.operands.begin(op); value != arrays.operands.end(op); ++value) {
    const std::int32_t definer = arrays.definers[*value];
    if (definer < 0 || parts[definer] == Part::None)
      continue;
    if (isScalar(*value, questions))
      usedAsScalar[definer] = 1;
    else
      found.uses.push_back({op, value - arrays.operands.begin(op), *value});
  }
}

// Looks up scalar results by signature: operations of a signature have the same result types, so that the types need
// not be read from memory again.
bool ExpressionSplitter::isScalar(std::int32_t value, const Questions &questions) {
  const std::int32_t definer = arrays.definers[value];
  if (definer < 0)
    return hasScalarType(value, questions);
  const std::int32_t *first = arrays.results.begin(definer), *end = arrays.results.end(definer);
  std::vector<char> &known = scalarResults[arrays.signatures[definer]];
  if (known.empty())
    std::transform(first, end, std::back_inserter(known),
                   [&](std::int32_t result) { return hasScalarType(result, questions); });
  return known[std::find(first, end, value) - first];
}

bool ExpressionSplitter::hasScalarType(std::int32_t value, const Questions &questions) {
  const void *type = capi.mlirValueGetType(arrays.value(value)).pointer;
  std::int32_t known = scalars.find(type);
  if (known == PointerMap::absent)
    known = scalars.insert(type, questions.isScalar(value)).first;
  return known == 1;
}

bool ExpressionSplitter::splitChains(std::int32_t scope, const Questions &questions) {
  const std::vector<std::int32_t> chains = chainsOf(find(scope, questions), questions);
  bool isSplit = false;
  // Users are copied before the operations that define their operands.
  std::for_each(chains.rbegin(), chains.rend(), [&](std::int32_t op) {
    const MlirValue result = arrays.value(*arrays.results.begin(op));
    std::vector<std::pair<MlirOperation, unsigned>> uses;
    for (MlirOpOperand use = capi.mlirValueGetFirstUse(result); use; use = capi.mlirOpOperandGetNextUse(use))
      uses.emplace_back(capi.mlirOpOperandGetOwner(use), capi.mlirOpOperandGetOperandNumber(use));
    for (std::size_t use = 1; use < uses.size(); ++use) {
      const MlirOperation copied = cloneBefore(arrays.ops[op], arrays.ops[op]);
      const auto &[user, position] = uses[use];
      capi.mlirOperationSetOperand(user, position, capi.mlirOperationGetResult(copied, 0));
      isSplit = true;
    }
  });
  return isSplit;
}

// Returns the operations in chains, in the order of the text. A chain starts from no tensor; an empty tensor does not
// count as a source.
std::vector<std::int32_t> ExpressionSplitter::chainsOf(const Scope &found, const Questions &questions) {
  std::vector<std::int32_t> ops(found.constants.size() + found.expansions.size()), chains;
  std::merge(found.constants.begin(), found.constants.end(), found.expansions.begin(), found.expansions.end(),
             ops.begin());
  std::vector<char> isInChain(arrays.ops.size(), 0);
  for (std::int32_t op : ops) {
    const auto results = arrays.results.end(op) - arrays.results.begin(op);
    if (results != 1 || found.groups.count(op) || isScalar(*arrays.results.begin(op), questions))
      continue;
    std::size_t sources = 0;
    bool isChain = true;
    for (const std::int32_t *value = arrays.operands.begin(op); value != arrays.operands.end(op); ++value) {
      if (isScalar(*value, questions))
        continue;
      const std::int32_t definer = arrays.definers[*value];
      const bool isEmpty = arrays.operands.begin(definer) == arrays.operands.end(definer) &&
                           kind(definer) == ExpressionKind::OfConstants;
      sources += !isEmpty;
      isChain &= isInChain[definer];
    }
    if (isChain && sources <= 1) {
      isInChain[op] = 1;
      chains.push_back(op);
    }
  }
  return chains;
}

// Returns for each use the operations that define its value, in the order of the text, without those that are needed
// only for scalars.
Groups ExpressionSplitter::needed(const Scope &found, const Questions &questions) {
  Groups ops;
  for (std::size_t use = 0; use < found.uses.size(); ++use) {
    ++seenCount;
    const auto add = [&](std::int32_t op) {
      if (std::exchange(seen[op], seenCount) != seenCount) {
        ops.numbers.push_back(op);
        lastUse[op] = static_cast<std::int32_t>(use);
      }
    };
    const auto first = static_cast<std::size_t>(ops.start.back());
    add(arrays.definers[found.uses[use].value]);
    for (std::size_t next = first; next < ops.numbers.size(); ++next) {
      const std::int32_t op = ops.numbers[next];
      for (const std::int32_t *value = arrays.operands.begin(op); value != arrays.operands.end(op); ++value) {
        const std::int32_t definer = arrays.definers[*value];
        if (definer >= 0 && parts[definer] != Part::None && !isScalar(*value, questions))
          add(definer);
      }
    }
    std::sort(ops.numbers.begin() + static_cast<std::ptrdiff_t>(first), ops.numbers.end());
    ops.endGroup();
  }
  return ops;
}

// Marks the operations with scalar results, whose uses share them, and all operations that these need.
void ExpressionSplitter::markShared(const Scope &found, const Questions &questions) {
  std::vector<std::int32_t> rest;
  const auto add = [&](std::int32_t op) {
    if (!std::exchange(shared[op], 1))
      rest.push_back(op);
  };
  for (std::int32_t op : found.constants)
    if (std::any_of(arrays.results.begin(op), arrays.results.end(op),
                    [&](std::int32_t value) { return isScalar(value, questions); }))
      add(op);
  while (!rest.empty()) {
    const std::int32_t op = rest.back();
    rest.pop_back();
    for (const std::int32_t *value = arrays.operands.begin(op); value != arrays.operands.end(op); ++value)
      if (const std::int32_t definer = arrays.definers[*value]; definer >= 0 && parts[definer] != Part::None)
        add(definer);
  }
}

// Assigns the original of an operation to the current use.
void ExpressionSplitter::keep(std::int32_t op, const Scope &found, const Questions &questions) {
  const auto groups = found.groups.find(op);
  useCopies(arrays.ops[op], op);
  ownCallee(arrays.ops[op], op, questions);
  if (groups != found.groups.end())
    std::for_each(groups->second.rbegin(), groups->second.rend(),
                  [&](std::int32_t group) {
                    capi.mlirOperationMoveAfter(arrays.ops[group], arrays.ops[op]);
                    arrays.made.add(arrays.ops[group]);
                  });
}

// Copies an operation and its memberships of sharding groups for the current use.
void ExpressionSplitter::copy(std::int32_t op, const Scope &found, const Questions &questions) {
  MlirOperation copied = cloneBefore(arrays.ops[op], arrays.ops[op]);
  useCopies(copied, op);
  ownCallee(copied, op, questions);
  std::intptr_t position = 0;
  for (const std::int32_t *value = arrays.results.begin(op); value != arrays.results.end(op); ++value) {
    copies[*value] = capi.mlirOperationGetResult(copied, position++);
    copiedFor[*value] = useCount;
  }
  if (const auto groups = found.groups.find(op); groups != found.groups.end())
    for (std::int32_t group : groups->second)
      useCopies(cloneBefore(arrays.ops[group], arrays.ops[op]), group);
}

void ExpressionSplitter::useCopies(MlirOperation op, std::int32_t original) const {
  std::intptr_t position = 0;
  for (const std::int32_t *value = arrays.operands.begin(original); value != arrays.operands.end(original);
       ++value, ++position)
    if (copiedFor[*value] == useCount)
      capi.mlirOperationSetOperand(op, position, copies[*value]);
}

void ExpressionSplitter::ownCallee(MlirOperation op, std::int32_t original, const Questions &questions) {
  if (kind(original) != ExpressionKind::Call)
    return;
  const std::string callee = questions.calleeOfOwn(original);
  capi.mlirOperationSetAttributeByName(
      op, toStringRef("callee"),
      capi.mlirFlatSymbolRefAttrGet(capi.mlirOperationGetContext(op), toStringRef(callee)));
  arrays.made.add(op);
}

MlirOperation ExpressionSplitter::cloneBefore(MlirOperation op, MlirOperation place) {
  MlirOperation clone = capi.mlirOperationClone(op);
  capi.mlirBlockInsertOwnedOperationBefore(capi.mlirOperationGetBlock(place), place, clone);
  arrays.made.add(clone);
  return clone;
}

// Erases an operation that no use keeps, and its memberships of sharding groups, if it has no other users.
void ExpressionSplitter::eraseUnused(std::int32_t op) {
  if (usedAsScalar[op] || (lastUse[op] >= 0 && !shared[op]))
    return;
  std::vector<MlirOperation> members;
  for (const std::int32_t *value = arrays.results.begin(op); value != arrays.results.end(op); ++value)
    for (MlirOpOperand use = capi.mlirValueGetFirstUse(arrays.value(*value)); use;
         use = capi.mlirOpOperandGetNextUse(use)) {
      members.push_back(capi.mlirOpOperandGetOwner(use));
      const void *name = capi.mlirOperationGetName(members.back()).pointer;
      if (std::find(groupNames.begin(), groupNames.end(), name) == groupNames.end())
        return;
    }
  members.push_back(arrays.ops[op]);
  for (MlirOperation erased : members) {
    arrays.made.leaveOut(erased);
    capi.mlirOperationDestroy(erased);
  }
}

} // namespace mlir_shard
