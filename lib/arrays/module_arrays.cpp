// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "arrays/module_arrays.h"

#include "ir/below.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>

namespace mlir_shard {

ModuleArrays::ModuleArrays(const Capi &capi, MlirOperation root, const std::vector<std::string> &ignored,
                           AnySizes anySizes)
    : capi(capi) {
  {
    Reading reading{{capi, capi.mlirOperationGetContext(root), ignored, std::move(anySizes)}, {}, {}};
    visit(root, -1, reading);
  }
  shrinkToFit();
}

// Frees unused capacity, up to half of each vector: several such arrays may be alive at once.
void ModuleArrays::shrinkToFit() {
  ops.shrink_to_fit();
  parents.shrink_to_fit();
  signatures.shrink_to_fit();
  operands.shrinkToFit();
  results.shrinkToFit();
  values.shrinkToFit();
  definers.shrink_to_fit();
}

// Visits the operations in the regions of `op`, whose number is `parent`.
void ModuleArrays::visit(MlirOperation op, std::int32_t parent, Reading &reading) {
  for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
       region = capi.mlirRegionGetNextInOperation(region))
    for (MlirBlock block = capi.mlirRegionGetFirstBlock(region); block; block = capi.mlirBlockGetNextInRegion(block)) {
      for (std::intptr_t i = 0, count = capi.mlirBlockGetNumArguments(block); i < count; ++i)
        add(capi.mlirBlockGetArgument(block, i), -1, reading);
      eachInBlock(capi, block, [&](MlirOperation child) {
        // The host reads attributes with the context of an operation, which it takes from the operation's location.
        if (const MlirOperation next = capi.mlirOperationGetNextInBlock(child))
          __builtin_prefetch(capi.mlirOperationGetLocation(next).pointer);
        const auto number = static_cast<std::int32_t>(ops.size());
        ops.push_back(child);
        parents.push_back(parent);
        reading.types.clear();
        for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(child); i < count; ++i)
          operands.numbers.push_back(add(capi.mlirOperationGetOperand(child, i), -1, reading));
        operands.endGroup();
        reading.types.push_back({nullptr});
        for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(child); i < count; ++i)
          results.numbers.push_back(add(capi.mlirOperationGetResult(child, i), number, reading));
        results.endGroup();
        reading.types.push_back({nullptr});
        signatures.push_back(reading.known.ofTypes(child, reading.types));
        if (static_cast<std::size_t>(signatures.back()) == representatives.size())
          representatives.push_back(child);
        visit(child, number, reading);
      });
    }
}

// Returns the number of a value, and appends its type to `reading.types`. An operand may precede its definition, in a
// region without dominance or in a later block. The type of a value is read once: reading it at a use would load the
// operation that defines the value, which may be far away in memory.
std::int32_t ModuleArrays::add(MlirValue value, std::int32_t definer, Reading &reading) {
  const auto [number, isNew] = values.insert(value.pointer);
  if (isNew) {
    definers.push_back(definer);
    reading.typesOfValues.push_back(capi.mlirValueGetType(value));
  } else if (definer >= 0) {
    definers[number] = definer;
  }
  reading.types.push_back(reading.typesOfValues[number]);
  return number;
}

void ModuleArrays::replaceAll(const std::function<MlirOperation(std::int32_t)> &prototypeOf) {
  std::vector<MlirOperation> prototypes;
  for (std::size_t signature = 0; signature < representatives.size(); ++signature)
    prototypes.push_back(prototypeOf(static_cast<std::int32_t>(signature)));
  std::vector<std::int32_t> replaced;
  for (std::size_t op = 0; op < ops.size(); ++op)
    if (prototypes[signatures[op]])
      replaced.push_back(static_cast<std::int32_t>(op));
  constexpr std::size_t ahead = 8; // The number of operations that are replaced while one is loaded from memory.
  for (std::size_t i = 0; i < replaced.size(); ++i) {
    if (i + ahead < replaced.size())
      prefetch(ops[replaced[i + ahead]].pointer);
    replace(replaced[i], capi.mlirOperationClone(prototypes[signatures[replaced[i]]]));
  }
}

// Replaces an operation by `by`, which is in no block yet, and erases the old operation.
void ModuleArrays::replace(std::int32_t op, MlirOperation by) {
  MlirOperation old = ops[op];
  capi.mlirOperationSetLocation(by, capi.mlirOperationGetLocation(old));
  capi.mlirBlockInsertOwnedOperationBefore(capi.mlirOperationGetBlock(old), old, by);
  std::intptr_t position = 0;
  for (const std::int32_t *number = results.begin(op); number != results.end(op); ++number) {
    MlirValue result = capi.mlirOperationGetResult(by, position++);
    capi.mlirValueReplaceAllUsesOfWith(value(*number), result);
    values.replace(*number, result.pointer);
  }
  ops[op] = by;
  if (MlirOperation &first = representatives[signatures[op]]; first == old)
    first = by;
  made.leaveOut(old);
  made.add(by);
  capi.mlirOperationDestroy(old);
}

std::vector<std::int32_t> ModuleArrays::outermost(const std::function<Closes(std::int32_t)> &closes,
                                                  const std::function<bool(std::int32_t)> &isClosed) const {
  std::vector<std::optional<Closes>> known(representatives.size());
  std::vector<char> inside(ops.size());
  std::vector<std::int32_t> found;
  for (std::size_t number = 0; number < ops.size(); ++number) {
    const auto op = static_cast<std::int32_t>(number);
    if (parents[op] >= 0 && inside[parents[op]]) {
      inside[op] = 1;
      continue;
    }
    found.push_back(op);
    std::optional<Closes> &answer = known[signatures[op]];
    if (!answer)
      answer = closes(signatures[op]);
    inside[op] = *answer == Closes::Depends ? isClosed(op) : *answer == Closes::Yes;
  }
  return found;
}

std::vector<std::int32_t> ModuleArrays::argumentsOf(std::int32_t op) const {
  const MlirRegion region = capi.mlirOperationGetFirstRegion(ops.at(op));
  return argumentsOf(region ? capi.mlirRegionGetFirstBlock(region) : MlirBlock{});
}

std::vector<std::int32_t> ModuleArrays::argumentsOf(MlirBlock block) const {
  std::vector<std::int32_t> found;
  for (std::intptr_t i = 0, count = block ? capi.mlirBlockGetNumArguments(block) : 0; i < count; ++i)
    found.push_back(numberOf(capi.mlirBlockGetArgument(block, i)));
  return found;
}

ModuleArrays::Boundary ModuleArrays::boundaryOf(std::int32_t op) const {
  Boundary found{operands.group(op), results.group(op), {}, {}};
  for (MlirRegion region = capi.mlirOperationGetFirstRegion(ops.at(op)); region;
       region = capi.mlirRegionGetNextInOperation(region)) {
    MlirBlock block = capi.mlirRegionGetFirstBlock(region), last = block;
    found.arguments.push_back(argumentsOf(block));
    for (; block; block = capi.mlirBlockGetNextInRegion(block))
      last = block;
    if (!last)
      continue;
    const MlirOperation terminator = lastInBlock(capi, last);
    std::vector<std::int32_t> &returned = found.returned.emplace_back();
    for (std::intptr_t i = 0, count = terminator ? capi.mlirOperationGetNumOperands(terminator) : 0; i < count; ++i)
      returned.push_back(numberOf(capi.mlirOperationGetOperand(terminator, i)));
  }
  return found;
}

std::string ModuleArrays::usedOnce() const {
  std::string uses(values.size(), 0);
  for (std::int32_t value : operands.numbers)
    uses[value] = std::min<char>(uses[value] + 1, 2);
  for (char &count : uses)
    count = count == 1;
  return uses;
}

void ModuleArrays::findUses() {
  if (uses.start.size() == values.size() + 1)
    return;
  std::vector<std::int32_t> next(values.size() + 1);
  for (std::int32_t value : operands.numbers)
    next[value + 1] += 2;
  for (std::size_t value = 0; value < values.size(); ++value)
    next[value + 1] += next[value];
  uses.start = next;
  uses.numbers.resize(2 * operands.numbers.size());
  for (std::size_t op = 0; op < ops.size(); ++op)
    for (const std::int32_t *value = operands.begin(op); value != operands.end(op); ++value) {
      uses.numbers[next[*value]++] = static_cast<std::int32_t>(op);
      uses.numbers[next[*value]++] = static_cast<std::int32_t>(value - operands.begin(op));
    }
}

std::vector<std::int32_t> ModuleArrays::usersOf(std::int32_t value) {
  std::vector<std::int32_t> found;
  eachUse(value, [&](std::int32_t op, std::int32_t) {
    if (found.empty() || found.back() != op)
      found.push_back(op);
  });
  return found;
}

std::vector<std::int32_t> ModuleArrays::formsOfAnySizes(const std::vector<bool> &wanted,
                                                        const std::vector<std::string> &ignored) const {
  std::vector<std::int32_t> forms(representatives.size(), -1);
  if (forms.empty())
    return forms;
  Signatures ofAnySizes(capi, capi.mlirOperationGetContext(representatives.front()), ignored,
                        [](std::string_view) { return true; });
  for (std::size_t signature = 0; signature < forms.size(); ++signature)
    if (wanted.at(signature))
      forms[signature] = ofAnySizes.of(representatives[signature]);
  return forms;
}

std::vector<std::int32_t> ModuleArrays::lastFollowing(const std::vector<std::int32_t> &operations,
                                                      const std::vector<bool> &follows) {
  const std::vector<std::int32_t> users = soleUsers();
  std::vector<std::int32_t> known(ops.size(), -1), path, found;
  for (std::int32_t op : operations) {
    path.clear();
    while (known.at(op) < 0) {
      path.push_back(op);
      if (results.end(op) - results.begin(op) != 1)
        break;
      const std::int32_t user = users[*results.begin(op)];
      if (user < 0 || !follows.at(signatures[user]) || parents[user] != parents[op])
        break;
      op = user;
    }
    const std::int32_t last = known[op] < 0 ? op : known[op];
    for (std::int32_t one : path)
      known[one] = last;
    found.push_back(last);
  }
  return found;
}

std::vector<std::int32_t> ModuleArrays::soleUsers() const {
  std::vector<std::int32_t> users(values.size(), -1);
  for (std::size_t op = 0; op < ops.size(); ++op)
    for (const std::int32_t *value = operands.begin(op); value != operands.end(op); ++value)
      users[*value] = users[*value] == -1 ? static_cast<std::int32_t>(op) : -2;
  return users;
}

std::vector<std::int32_t> ModuleArrays::useStates(const std::vector<bool> &movers) const {
  std::vector<std::int32_t> states = soleUsers();
  for (std::int32_t &state : states)
    if (state != -1)
      state = state >= 0 && movers.at(signatures[state]) ? -3 - signatures[state] : -2;
  return states;
}

std::vector<std::pair<std::int32_t, std::int32_t>>
ModuleArrays::attributed(const std::string &name, std::vector<MlirAttribute> &distinct) const {
  PointerMap seen;
  std::vector<std::pair<std::int32_t, std::int32_t>> found;
  for (std::size_t op = 0; op < ops.size(); ++op) {
    prefetchAfter(ops, op);
    MlirAttribute attribute = capi.mlirOperationGetDiscardableAttributeByName(ops[op], toStringRef(name));
    if (!attribute)
      continue;
    const auto [number, isNew] = seen.insert(attribute.pointer, static_cast<std::int32_t>(distinct.size()));
    if (isNew)
      distinct.push_back(attribute);
    found.emplace_back(static_cast<std::int32_t>(op), number);
  }
  return found;
}

void ModuleArrays::setResultNumbers(const std::string &name,
                                    const std::function<std::vector<std::int32_t>(MlirAttribute)> &numbersOf,
                                    std::int32_t *valueNumbers) const {
  std::vector<MlirAttribute> distinct;
  const auto uses = attributed(name, distinct);
  std::vector<std::vector<std::int32_t>> known;
  for (MlirAttribute attribute : distinct)
    known.push_back(numbersOf(attribute));
  for (const auto &[op, attribute] : uses) {
    // An operation without results may have the attribute too.
    const std::int32_t *result = results.begin(op);
    for (std::int32_t number : known[attribute])
      if (result != results.end(op))
        valueNumbers[*result++] = number;
  }
}

std::vector<std::int32_t> ModuleArrays::alike(const std::vector<std::int32_t> &operations,
                                              const std::int32_t *valueNumbers) const {
  std::unordered_map<std::vector<std::int32_t>, std::int32_t, NumbersHash> firsts;
  std::vector<std::int32_t> found, key;
  for (std::int32_t op : operations) {
    key.assign({signatures.at(op)});
    for (const Groups *group : {&operands, &results})
      for (const std::int32_t *value = group->begin(op); value != group->end(op); ++value)
        key.push_back(valueNumbers[*value]);
    found.push_back(firsts.emplace(key, op).first->second);
  }
  return found;
}

} // namespace mlir_shard
