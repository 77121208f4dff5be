// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The rewrite of one operation, by whatever changes the IR around it, replayed on isomorphic operations.
#pragma once

#include "ir/capi.h"

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mlir_shard {

// Construct it before an operation is rewritten. Afterwards `capture` reads the replacement: the operations between those
// that were before and behind the operation, and the values that replace its results.
class RewriteTemplate {
public:
  // The operation is not the last in its block, and what is behind it stays while it is changed.
  RewriteTemplate(const Capi &capi, MlirOperation op);
  RewriteTemplate(const RewriteTemplate &) = delete;
  ~RewriteTemplate();

  // Captures the rewrite. Returns whether it can be replayed: not where the replacement uses other values than the
  // operands of the operation.
  bool capture();

  // Replays the rewrite on an operation that differs from the captured one only in its name, operands and locations, in
  // the name only where the rewrite goes by no name. An operation that is replaced is erased.
  void replay(MlirOperation op) const;

private:
  // Where a value comes from: an operand of the operation where `op` is -1, else a result of one in the replacement.
  struct Source {
    std::int32_t op;
    std::int32_t index;
  };
  // A use of a result, by the operation that uses it and the number of the operand.
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
  // Where among those the operation itself is, if it has as many operands as before and no regions.
  std::int32_t kept = -1;
  std::vector<std::vector<Source>> sources;   // Of their operands.
  std::vector<std::pair<std::intptr_t, Source>> outputs; // What replaces the results that are used.
  bool isInPlace = false;                     // Nothing but its attributes and the types of its results has changed.
  // What has changed of the operation itself, if it is kept: attributes that it was given and that were taken away, and
  // the types of its results.
  std::vector<MlirNamedAttribute> given;
  std::vector<MlirIdentifier> taken;
  std::vector<MlirType> types;
};

} // namespace mlir_shard
