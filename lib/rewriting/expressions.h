// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Constant expressions of a module, and a copy of all that makes them for each of their uses.
#pragma once

#include "arrays/module_arrays.h"

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace mlir_shard {

// What the operations of a signature are to constant expressions: makers of constants, makers of constants from
// constants, the same where that is asked of each operation, what repeats a scalar too, bodies of their own, calls,
// members of sharding groups, and what can only use constants.
enum class ExpressionKind { Constant, OfConstants, AskedEach, Expansion, Computation, Call, Group, Terminator, Other };

// Splits the expressions of a module, scope by scope. A scope is what is inside an operation right under the root, or
// in a computation, without what is in computations inside it.
class ExpressionSplitter {
public:
  struct Questions {
    std::function<bool(std::int32_t value)> isScalar;        // Asked once for each type.
    std::function<bool(std::int32_t op)> preserves; // Of a computation, a call, or what is asked of each with constant
                                                    // operands: whether it makes constants of constants.
    std::function<std::string(std::int32_t op)> calleeOfOwn; // What a call that is for one use alone calls.
  };

  // `kinds` has one for each signature of the arrays, which have to outlive this.
  ExpressionSplitter(ModuleArrays &arrays, std::vector<ExpressionKind> kinds);

  // For each operation right under the root the scopes in it, inner ones first, and so itself last.
  std::vector<std::vector<std::int32_t>> scopes() const;

  // Gives each use of an expression in a scope its own copy of what makes it, the last one the operations there are,
  // and erases those that nothing uses then. What has a scalar result is kept for the uses of that. Whether operations
  // of the kind Other are in the scope.
  bool split(std::int32_t scope, const Questions &questions);

  // Gives each use of a chain in a scope its own copy of the operations in it, other expressions' uses too: of what
  // makes its result of no tensor, or of one from such a chain. Returns whether there were copies to make; then the
  // arrays have to be read anew.
  bool splitChains(std::int32_t scope, const Questions &questions);

private:
  enum class Part : char { None, Constant, Expansion };

  struct Use {
    std::int32_t user;
    std::intptr_t position;
    std::int32_t value;
  };

  // What is in a scope, in the order of the text; groups are by the operation that makes the member.
  struct Scope {
    std::vector<std::int32_t> constants, expansions;
    std::vector<Use> uses;
    std::unordered_map<std::int32_t, std::vector<std::int32_t>> groups;
    bool hasOther = false;
  };

  ExpressionKind kind(std::int32_t op) const { return kinds[arrays.signatures[op]]; }
  Scope find(std::int32_t scope, const Questions &questions);
  Part partOf(std::int32_t op, const Questions &questions);
  void addUses(std::int32_t op, Scope &found, const Questions &questions);
  bool isScalar(std::int32_t value, const Questions &questions);
  bool hasScalarType(std::int32_t value, const Questions &questions);
  Groups needed(const Scope &found, const Questions &questions);
  void markShared(const Scope &found, const Questions &questions);

  void keep(std::int32_t op, const Scope &found, const Questions &questions);
  void copy(std::int32_t op, const Scope &found, const Questions &questions);
  std::vector<std::int32_t> chainsOf(const Scope &found, const Questions &questions);
  void useCopies(MlirOperation op, std::int32_t original) const;
  void ownCallee(MlirOperation op, std::int32_t original, const Questions &questions);
  MlirOperation cloneBefore(MlirOperation op, MlirOperation place);
  void eraseUnused(std::int32_t op);

  ModuleArrays &arrays;
  const Capi &capi;
  std::vector<ExpressionKind> kinds;
  std::vector<const void *> groupNames;
  std::vector<std::int32_t> ends; // By operation, the first one after those inside it.
  PointerMap scalars;             // By type, whether it is one.
  std::vector<std::vector<char>> scalarResults; // By signature, which results are; empty before the first is asked for.

  // By operation.
  std::vector<Part> parts;
  std::vector<char> usedAsScalar, shared;
  std::vector<std::int32_t> lastUse; // The last use in its scope that needs it, -1 for none.
  std::vector<std::int32_t> seen;    // The last use, counted in all scopes, that was found to need it.
  // By value, its copy for the use at hand, counted in all scopes.
  std::vector<MlirValue> copies;
  std::vector<std::int32_t> copiedFor;
  std::int32_t useCount = 0, seenCount = 0;
};

} // namespace mlir_shard
