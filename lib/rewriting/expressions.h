// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Splitting of constant expressions: each use of an expression gets its own copy of the operations that compute it.
#pragma once

#include "arrays/module_arrays.h"

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace mlir_shard {

// The roles of operations in constant expressions: they define constants, compute constants from constants, do so
// depending on the operation, also expand a scalar, have a body, call a function, are members of sharding groups, or
// only use constants.
enum class ExpressionKind { Constant, OfConstants, AskedEach, Expansion, Computation, Call, Group, Terminator, Other };

// Splits the constant expressions of a module, scope by scope. A scope consists of the operations inside an operation
// directly under the root, or inside a computation, without the operations in nested computations.
class ExpressionSplitter {
public:
  struct Questions {
    std::function<bool(std::int32_t value)> isScalar;        // Called once for each type.
    std::function<bool(std::int32_t op)> preserves; // Returns whether an operation with constant operands computes a
                                                    // constant; called for computations, calls and the kind AskedEach.
    std::function<std::string(std::int32_t op)> calleeOfOwn; // Returns the function to call for a single use.
  };

  // `kinds` contains a kind for each signature of the arrays, which must outlive this object.
  ExpressionSplitter(ModuleArrays &arrays, std::vector<ExpressionKind> kinds);

  // Returns for each operation directly under the root the scopes in it, inner scopes first and the operation itself
  // last.
  std::vector<std::vector<std::int32_t>> scopes() const;

  // Gives each use of an expression in a scope its own copy of the operations that compute it; the last use gets the
  // originals. Erases the operations that become unused. Operations with scalar results are kept for the uses of the
  // scalars. Returns whether the scope contains operations of the kind Other.
  bool split(std::int32_t scope, const Questions &questions);

  // Gives each use of a chain in a scope its own copy of the chain's operations, including uses by other expressions. A
  // chain consists of operations that compute a tensor from no tensor or from one tensor of a chain. Returns whether
  // there were copies to make; if so, the arrays have to be read again.
  bool splitChains(std::int32_t scope, const Questions &questions);

private:
  enum class Part : char { None, Constant, Expansion };

  struct Use {
    std::int32_t user;
    std::intptr_t position;
    std::int32_t value;
  };

  // The expressions in a scope, in the order of the text; groups are by the operation that defines the member.
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
  std::vector<std::int32_t> ends; // By operation, the first operation after those inside it.
  PointerMap scalars;             // By type, whether it is a scalar.
  std::vector<std::vector<char>> scalarResults; // By signature, a flag for each result; empty before the first lookup.

  // The state of each operation.
  std::vector<Part> parts;
  std::vector<char> usedAsScalar, shared;
  std::vector<std::int32_t> lastUse; // The last use in its scope that needs the operation; -1 for none.
  std::vector<std::int32_t> seen;    // The last use, counted over all scopes, that was found to need the operation.
  // By value, its copy for the current use, counted over all scopes.
  std::vector<MlirValue> copies;
  std::vector<std::int32_t> copiedFor;
  std::int32_t useCount = 0, seenCount = 0;
};

} // namespace mlir_shard
