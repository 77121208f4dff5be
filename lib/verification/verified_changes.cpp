// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Verification of the operations that a pass reports as changed.

#include "ir/below.h"
#include "verification/verified_ops.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

namespace mlir_shard {

VerifiedOps::Verdict VerifiedOps::verifyChanged(MlirOperation root, const std::vector<MlirOperation> &made,
                                                const std::vector<MlirOperation> &moved,
                                                const std::vector<MlirOperation> &attributed) {
  const auto isAnyOf = [&](const auto &isOne) {
    const auto has = [&](const std::vector<MlirOperation> &ops) { return std::any_of(ops.begin(), ops.end(), isOne); };
    return has(made) || has(moved) || has(attributed);
  };
  const auto isSymbol = [&](MlirOperation op) { return capi.mlirOperationGetParentOperation(op) == symbols.module; };
  areSymbolsRead =
      areSymbolsRead && !isAnyOf([&](MlirOperation op) { return isSymbol(op) && !hasSameSymbol(op); });
  if (!beginIn(root) || !hasVerifiedSymbols() || (!symbols.areDistinct && isAnyOf(isSymbol)))
    return Verdict::Unknown;
  accepting = remembers = false;
  verifiedByHost.clear();
  visitedBodies = {};
  contents.beginWalk();
  changed.clear();
  visitedUsers = {};
  withoutEdge = {};
  lastParent = {};
  PointerNumbers visited; // A user may be listed once for each of the results that it uses.
  Verdict verdict = Verdict::Valid;
  const auto visitAll = [&](const std::vector<MlirOperation> &given, Change change) {
    const std::vector<MlirOperation> ops = outermostFirst(given);
    for (std::size_t i = 0; i < ops.size() && verdict == Verdict::Valid; ++i) {
      prefetchAhead(ops, i);
      if (change == Change::Attributes || visited.insert(ops[i].pointer).second)
        verdict = visitAlone(ops[i], change);
    }
  };
  visitAll(made, Change::Made);
  visitAll(moved, Change::Moved);
  visitAll(attributed, Change::Attributes);
  return finish(root, verdict);
}

// Returns the operations with containers first, each before those nested in it: the host verifies an operation together
// with the operations in its regions.
std::vector<MlirOperation> VerifiedOps::outermostFirst(const std::vector<MlirOperation> &ops) {
  std::vector<std::pair<std::size_t, MlirOperation>> containers;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    prefetchAfter(ops, i);
    if (nameOf(ops[i]).kind != Kind::Container)
      continue;
    std::size_t depth = 0;
    for (MlirOperation at = ops[i]; at; at = capi.mlirOperationGetParentOperation(at))
      ++depth;
    containers.emplace_back(depth, ops[i]);
  }
  if (containers.size() < 2)
    return ops;
  std::stable_sort(containers.begin(), containers.end(),
                   [](const auto &one, const auto &other) { return one.first < other.first; });
  std::vector<MlirOperation> ordered;
  ordered.reserve(ops.size());
  for (const auto &[depth, op] : containers)
    ordered.push_back(op);
  std::copy_if(ops.begin(), ops.end(), std::back_inserter(ordered),
               [&](MlirOperation op) { return nameOf(op).kind != Kind::Container; });
  return ordered;
}

// Prefetches an operation that is visited soon, and a user of an operation that is visited sooner.
void VerifiedOps::prefetchAhead(const std::vector<MlirOperation> &ops, std::size_t at) const {
  constexpr std::size_t ahead = 8;
  prefetchAfter(ops, at);
  if (at + ahead >= ops.size())
    return;
  const MlirOperation op = ops[at + ahead];
  if (!capi.mlirOperationGetNumResults(op))
    return;
  if (const MlirOpOperand use = capi.mlirValueGetFirstUse(capi.mlirOperationGetResult(op, 0)))
    prefetch(capi.mlirOpOperandGetOwner(use).pointer);
}

VerifiedOps::Verdict VerifiedOps::visitAlone(MlirOperation op, Change change) {
  const bool isMade = change == Change::Made || change == Change::Moved;
  const Name name = nameOf(op);
  hasEdges = hasEdges || name.kind == Kind::Edge;
  const MlirOperation parent = capi.mlirOperationGetParentOperation(op);
  // The validity of operations inside a manual computation depends on its attributes.
  if (name.kind == Kind::Unknown || name.isModule || (name.isManual && change == Change::Attributes) || !parent)
    return Verdict::Unknown;
  // With other changes, a new operand is a result of an operation that is visited too, together with its users.
  if (isMade && !areVisible(op))
    return Verdict::Unknown;
  const Around around = aroundOf(op);
  if (name.kind != Kind::Container) {
    const bool isLast = !capi.mlirOperationGetNextInBlock(op) && !nameOf(parent).isModule;
    const Verdict verdict = visitChanged(op, name, around, isLast, 0);
    if (verdict != Verdict::Valid || !isMade)
      return verdict;
    return hasOperandWithEdge(op) ? Verdict::Unknown : visitUsers(op, change);
  }
  if (isMade) {
    // Operations in it may use a value of the enclosing scope that has an edge.
    if (hasOperandWithEdge(op) || (hasEdges && !name.isIsolated))
      return Verdict::Unknown;
    if (visitedBodies.find(op.pointer) != PointerNumbers::absent)
      return visitUsers(op, change); // Visited inside a container that was made too.
    changed.push_back({op, true});
    const Verdict verdict = visitBodies(op, name, around, changed.size() - 1);
    return verdict == Verdict::Valid ? visitUsers(op, change) : verdict;
  }
  Key key;
  if (!containerKey(op, name, around, signatures.of(op), key))
    return Verdict::Unknown;
  const bool isKnown = containers.count(key) || (name.isFunction && isNamedAndTypedAsItsBody(capi, op) &&
                                                 functions.count(functionKeys.ofAttributes(op)));
  const Verdict verdict = isKnown ? Verdict::Valid : verdictAlone(op);
  if (verdict == Verdict::Valid)
    containers.insert(std::move(key));
  return verdict;
}

// Returns whether an operand of an operation is also used by an edge, which must be its only user.
bool VerifiedOps::hasOperandWithEdge(MlirOperation op) {
  if (!hasEdges || nameOf(op).kind == Kind::Edge)
    return false;
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i) {
    const MlirValue operand = capi.mlirOperationGetOperand(op, i);
    if (!withoutEdge.insert(operand.pointer).second)
      continue;
    for (MlirOpOperand use = capi.mlirValueGetFirstUse(operand); use; use = capi.mlirOpOperandGetNextUse(use))
      if (nameOf(capi.mlirOpOperandGetOwner(use)).kind == Kind::Edge)
        return true; // The verdict is then unknown, so no other operation is checked.
  }
  return false;
}

// Users of a value that was made or moved must come after it, and must be valid with its type. A value that replaced
// another one of the same type concerns only users whose verifiers look at its definition.
VerifiedOps::Verdict VerifiedOps::visitUsers(MlirOperation op, Change change) {
  const auto looksAtIt = [&](MlirOperation user) {
    const Kind kind = nameOf(user).kind;
    return kind == Kind::OfConstants || kind == Kind::OfMeshes || kind == Kind::Edge || kind == Kind::Unknown;
  };
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i) {
    const MlirValue result = capi.mlirOperationGetResult(op, i);
    for (MlirOpOperand use = capi.mlirValueGetFirstUse(result); use; use = capi.mlirOpOperandGetNextUse(use)) {
      const MlirOperation user = capi.mlirOpOperandGetOwner(use);
      if (!dominates(result, user))
        return Verdict::Unknown;
      if (change == Change::Moved && !looksAtIt(user))
        continue;
      if (const Verdict verdict = visitUser(user); verdict != Verdict::Valid)
        return verdict;
    }
  }
  return Verdict::Valid;
}

VerifiedOps::Verdict VerifiedOps::visitUser(MlirOperation user) {
  // The key of an operation with regions contains all nested operations, so the outermost operation inside the
  // container is visited.
  MlirOperation outer = user;
  for (MlirOperation around = capi.mlirOperationGetParentOperation(user); around;
       around = capi.mlirOperationGetParentOperation(around)) {
    if (nameOf(around).kind == Kind::Container)
      break;
    outer = around;
  }
  if (!visitedUsers.insert(outer.pointer).second)
    return Verdict::Valid;
  const Verdict verdict = visitAlone(outer, Change::Operands);
  if (verdict != Verdict::Valid || nameOf(outer).kind == Kind::Container)
    return verdict;
  const MlirOperation parent = capi.mlirOperationGetParentOperation(outer);
  // Terminators are verified with the operation whose block they end.
  const bool isLast = !capi.mlirOperationGetNextInBlock(outer) && parent && !nameOf(parent).isModule;
  return isLast ? visitAlone(parent, Change::Operands) : verdict;
}

VerifiedOps::Around VerifiedOps::aroundOf(MlirOperation op) {
  const MlirOperation parent = capi.mlirOperationGetParentOperation(op);
  if (!(parent == lastParent)) {
    const std::int32_t signature = signatures.of(parent);
    const void *manual = nameOf(parent).isModule ? nullptr : aroundOf(parent).manual;
    lastAround = {signature, nameOf(parent).number, manualInside(parent, manual, signature), {}};
    lastParent = parent;
  }
  lastAround.block = capi.mlirOperationGetBlock(op);
  return lastAround;
}

// Returns whether an operation comes before another one in their block. Most inserted operations are used by one of the
// next operations; in other cases the host may have to number all operations of the block.
bool VerifiedOps::isBefore(MlirOperation one, MlirOperation other) const {
  MlirOperation next = one;
  for (int i = 0; i < 4 && next; ++i) {
    next = capi.mlirOperationGetNextInBlock(next);
    if (next == other)
      return true;
  }
  return capi.mlirOperationIsBeforeInBlock(one, other);
}

bool VerifiedOps::dominates(MlirValue value, MlirOperation user) {
  const bool isArgument = capi.mlirValueIsABlockArgument(value);
  const MlirOperation definer = isArgument ? MlirOperation{} : capi.mlirOpResultGetOwner(value);
  const MlirBlock block =
      isArgument ? capi.mlirBlockArgumentGetOwner(value) : capi.mlirOperationGetBlock(definer);
  for (MlirOperation at = user; at; at = capi.mlirOperationGetParentOperation(at)) {
    if (capi.mlirOperationGetBlock(at) == block)
      return isArgument || (!(at == definer) && isBefore(definer, at));
    const MlirOperation parent = capi.mlirOperationGetParentOperation(at);
    if (!parent || nameOf(parent).isIsolated)
      return false;
  }
  return false;
}

} // namespace mlir_shard
