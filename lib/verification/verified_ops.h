// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Verification of what has changed: the host verifies one operation of each kind, and not all that are like it.
#pragma once

#include "ir/capi.h"
#include "ir/mixed.h"
#include "ir/pointer_map.h"
#include "ir/signatures.h"
#include "ir/walk.h"
#include "verification/op_contents.h"
#include "verification/verified_functions.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace mlir_shard {

// What is known to be valid in one context.
//
// The verifier of an operation without regions looks at its name, attributes, types and place in its block; some look
// further, at the operation around it, at constant operands, or at symbols. Operations that agree in all of that are
// valid together. Those with regions are known by what is in these, or, for functions, loops and manual computations,
// by the arguments and the terminators of their blocks. An operation that has not changed since the last run, nor what
// its verifier looks at, is passed over; that values are defined before they are used is looked at again for what is new
// or has been moved.
class VerifiedOps {
public:
  enum class Verdict { Valid, Invalid, Unknown };

  // Returns the attribute with the shardings of the results of operations of a name; none where they may be elsewhere.
  using ShardingOfResults = std::function<std::optional<std::string>(const std::string &)>;

  // Attributes named in `ignored` are not for the host to verify. `shardingOfResults` is called once for each name.
  VerifiedOps(const Capi &capi, MlirContext context, const std::vector<std::string> &ignored,
              ShardingOfResults shardingOfResults);

  // Whether all in `root` is valid. Where an operation is not, the host has emitted an error; where that is not known,
  // the host has to verify the whole.
  Verdict verify(MlirOperation root);

  // The same where nothing in `root` has changed since it was valid but for `made`, operations that were made or given
  // other operands, types or regions, `moved`, which were moved or took the place of others with the same types, and
  // `attributed`, which were given other attributes. Unknown where that may concern others.
  Verdict verifyChanged(MlirOperation root, const std::vector<MlirOperation> &made,
                        const std::vector<MlirOperation> &moved, const std::vector<MlirOperation> &attributed);

  // Remembers that operations like those in `root` are valid, as the host has found. Returns one operation of each kind
  // of sdy that was not known: the host may not have called their verifiers. Keeps no hash of each operation: they take
  // memory, and passes that return what they change need none.
  std::vector<MlirOperation> accept(MlirOperation root);

  // Whether to assume that no symbol of the module around a root changes from now on, but the root itself where it is
  // one. Returns the value before.
  bool setKeepsSymbols(bool keeps);

  // The operations that the last run over all has found to have changed, or not to be known; none the next time.
  std::vector<Searched> takeChanged() { return std::exchange(changed, {}); }

private:
  using Key = FunctionKeys::Key;

  // How the verifier of operations of one name is known to work.
  enum class Kind {
    Unknown,
    Plain,       // It looks at the operation alone.
    OfConstants, // At constant operands as well.
    OfParent,    // At the operation around it.
    OfMeshes,    // At the meshes of the module, at manual computations around it, and at the sharding of an operand.
    OfGrids,     // At the grids of the module, as a user of their symbols.
    Call,        // At the function that is called.
    Edge,        // At what its operand is of, and whether that has other uses.
    Container,   // At its own types, and at the arguments and terminators of its blocks.
  };

  // How an operation that is verified alone has changed.
  enum class Change { Made, Moved, Attributes, Operands };

  struct Name {
    Kind kind;
    std::int32_t number;
    bool isModule, isFunction, isIsolated, isManual, isOfSdy;
    std::optional<std::string> sharding; // The attribute with the shardings of the results.
  };

  // A block whose operations are being visited.
  struct Around {
    std::int32_t signature, name;
    const void *manual; // The manual computations around it.
    MlirBlock block;
  };

  // The symbols of a module. Names live in the context.
  struct Symbols {
    MlirOperation module;
    const void *others = nullptr; // The number of its meshes and grids.
    std::unordered_map<std::string_view, MlirType> functionTypes;
    // The names and types of functions by operation, and a hash of all.
    std::unordered_map<const void *, std::pair<const void *, const void *>> functions;
    std::uint64_t functionsContent = 0;
    bool areDistinct = true;
  };

  static constexpr std::int32_t noSignature = -1;

  Verdict run(MlirOperation root, bool accepting);
  bool beginIn(MlirOperation root);
  bool hasSameSymbol(MlirOperation function) const;
  void prefetchAhead(const std::vector<MlirOperation> &ops, std::size_t at) const;
  Verdict visitAlone(MlirOperation op, Change change);
  bool hasOperandWithEdge(MlirOperation op);
  Verdict visitUsers(MlirOperation op, Change change);
  Verdict visitUser(MlirOperation user);
  Around aroundOf(MlirOperation op);
  const void *manualInside(MlirOperation op, const void *outer, std::int32_t signature);
  bool isBefore(MlirOperation one, MlirOperation other) const;
  bool dominates(MlirValue value, MlirOperation user);
  Verdict visit(MlirOperation op, const Around &around, bool isLast);
  Verdict visitChanged(MlirOperation op, const Name &name, const Around &around, bool isLast, std::size_t place,
                       std::int32_t signature = noSignature);
  std::pair<Content, std::int32_t> contentOf(MlirOperation op, const Name &name, const Around &around, bool isLast);
  std::int32_t constantSignature(MlirValue value);
  std::int32_t addContent(MlirOperation op, Content &content);
  Verdict visitLeaf(MlirOperation op, const Name &name, const Around &around, bool isLast, std::int32_t signature);
  Verdict visitSpecialLeaf(MlirOperation op, const Name &name, const Around &around, Key key);
  Verdict visitBodies(MlirOperation op, const Name &name, const Around &around, std::size_t place);
  Verdict visitWhole(MlirOperation op, const Around &around);
  Verdict hostVerdict(MlirOperation op);
  Verdict verdictAlone(MlirOperation op);
  Verdict knownAmongGrids(Key key, MlirOperation op);
  Verdict verdictAmongGrids(MlirOperation op);
  Verdict known(std::unordered_set<Key, PointersHash> &keys, Key key, MlirOperation op);
  bool containerKey(MlirOperation op, const Name &name, const Around &around, std::int32_t signature, Key &key);
  std::uint64_t sourceOf(MlirOperation edge) const;
  bool addSharding(MlirOperation user, Key &key);
  void addUnverified(MlirOperation op);
  bool isCallOfFunction(MlirOperation call) const;
  bool wholeKey(MlirOperation op, Key &key);
  void readSymbols(MlirOperation module);
  bool hasVerifiedSymbols() const;
  Verdict finish(MlirOperation root, Verdict verdict);
  bool areVisible(MlirOperation op);
  bool isBeforeUsers(MlirOperation op);
  const Name &nameOf(MlirOperation op);

  const Capi &capi;
  ShardingOfResults shardingOfResults;
  FunctionKeys functionKeys;
  Signatures signatures;
  Signatures symbolSignatures; // Without what no user of a symbol looks at.
  PointerMap numbersOfNames;
  std::deque<Name> names; // By number; these stay where they are.
  std::unordered_set<std::uint64_t> leaves;
  std::unordered_set<Key, PointersHash> specialLeaves, containers, functions, wholes;

  OpContents contents;
  std::vector<Searched> changed;
  std::vector<MlirOperation> unverified; // Of sdy, while operations are accepted.

  // Of the run.
  bool accepting = false;
  bool remembers = false; // Whether a hash of each operation is kept.
  Symbols symbols;         // Of the module around the root.
  Symbols verifiedSymbols; // Of the last module that was valid.
  bool keepsSymbols = false;
  bool areSymbolsRead = false; // Since they are kept.
  bool hasEdges = false;              // Whether there was one in the last run.
  PointerNumbers visitedUsers;        // Of the operations that are verified alone.
  PointerNumbers withoutEdge;         // Values that no edge uses.
  MlirOperation lastParent;           // Of the operations that are verified alone, which often have one parent.
  Around lastAround;
  std::unordered_map<Key, std::int32_t, PointersHash> symbolNumbers, manualNumbers;
};

} // namespace mlir_shard
