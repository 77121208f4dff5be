// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The rewrite of one operation, by any change of the IR around it, that is replayed on isomorphic operations.
#pragma once

#include "ir/capi.h"

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mlir_shard {

// A captured rewrite. Construct the template before the operation is rewritten. Afterwards `capture` reads the
// replacement: the operations between the neighbours that the operation had, and the values that replace its results.
class RewriteTemplate {
public:
  // The operation must not be the last in its block, and the next operation must stay in place during the rewrite.
  RewriteTemplate(const Capi &capi, MlirOperation op);
  RewriteTemplate(const RewriteTemplate &) = delete;
  ~RewriteTemplate();

  // Captures the rewrite. Returns whether it can be replayed, which requires that the replacement uses no other values
  // than the operands of the operation.
  bool capture();

  // Replays the rewrite on an operation that differs from the captured one only in its operands, its location, and, if
  // the rewrite does not depend on it, its name. An operation that is replaced is erased.
  void replay(MlirOperation op) const;

private:
  // The source of a value: an operand of the operation if `op` is -1, and otherwise a result of an operation in the
  // replacement.
  struct Source {
    std::int32_t op;
    std::int32_t index;
  };
  // A use of a result: the user and the number of the operand.
  struct Use {
    std::intptr_t result;
    MlirOperation user;
    unsigned number;
  };
  using Sources = std::unordered_map<const void *, Source>;

  template <typename VisitOperation, typename VisitArgument>
  void eachInside(MlirOperation root, const VisitOperation &visitOp, const VisitArgument &visitArgument) const;
  bool isSelfContained(MlirOperation op) const;
  bool findSources(MlirOperation op, const Sources &known);
  bool findOutputs(const Sources &known);
  void compareAttributes();
  void changeInPlace(MlirOperation op) const;
  MlirOperation copied(std::size_t number, MlirOperation other) const;
  void replace(MlirOperation op) const;
  void relocate(MlirOperation copy, MlirLocation location, MlirOperation other) const;

  const Capi &capi;
  MlirOperation op;
  MlirOperation marker;
  MlirOperation next;
  MlirLocation location;
  std::vector<MlirValue> operands;
  std::vector<MlirNamedAttribute> attributes;
  std::vector<Use> uses;

  std::vector<MlirOperation> replacement;
  // The index of the operation itself in `replacement` if it has as many operands as before and no regions; -1
  // otherwise.
  std::int32_t kept = -1;
  std::vector<std::vector<Source>> sources;   // Of the operands in the replacement.
  std::vector<std::pair<std::intptr_t, Source>> outputs; // The replacements of the used results.
  bool isInPlace = false;                     // Whether only its attributes and result types have changed.
  // The changes of the operation itself, if it is kept: added and removed attributes, and the types of its results.
  std::vector<MlirNamedAttribute> given;
  std::vector<MlirIdentifier> taken;
  std::vector<MlirType> types;
};

} // namespace mlir_shard
