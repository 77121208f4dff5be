// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Incremental verification: the host verifies one operation of each kind instead of all equivalent operations.
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
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace mlir_shard {

// The operations of one context that are known to be valid.
//
// The verifier of an operation without regions checks its name, attributes, types and position in its block; some
// verifiers also check the enclosing operation, constant operands, or symbols. Operations that agree in all of these
// have the same validity. Operations with regions are compared by the contents of the regions, or, for functions, loops
// and manual computations, by the arguments and the terminators of their blocks. An operation is skipped if it and the
// properties that its verifier checks have not changed since the last run. Dominance is checked again for new and moved
// operations.
class VerifiedOps {
public:
  enum class Verdict { Valid, Invalid, Unknown };

  // Returns the attribute with the shardings of the results of operations with a name; nullopt if they may be stored
  // elsewhere.
  using ShardingOfResults = std::function<std::optional<std::string>(const std::string &)>;

  // The host does not verify attributes named in `ignored`. `shardingOfResults` is called once for each name.
  VerifiedOps(const Capi &capi, MlirContext context, const std::vector<std::string> &ignored,
              ShardingOfResults shardingOfResults);

  // Returns whether all operations in `root` are valid. If one is invalid, the host has emitted an error; if the
  // verdict is unknown, the host has to verify all of `root`.
  Verdict verify(MlirOperation root);

  // Returns the verdict on `root`, in which only the listed operations have changed since it was valid: `made` were
  // created or given other operands, types or regions, `moved` were moved or replaced others with the same types, and
  // `attributed` were given other attributes. The verdict is unknown if the changes may affect other operations.
  Verdict verifyChanged(MlirOperation root, const std::vector<MlirOperation> &made,
                        const std::vector<MlirOperation> &moved, const std::vector<MlirOperation> &attributed);

  // Records that operations like those in `root` are valid, as verified by the host. Returns one sdy operation of each
  // unknown kind: the host may not have called their verifiers. Keeps no hash of each operation: hashes take memory,
  // and passes that return their changes need none.
  std::vector<MlirOperation> accept(MlirOperation root);

  // Sets whether to assume that no symbol of the enclosing module changes from now on, except for the root itself if it
  // is a symbol. Returns the previous value.
  bool setKeepsSymbols(bool keeps);

  // Returns the operations that the last full run found to be changed or unknown, and clears the list.
  std::vector<Searched> takeChanged() { return std::exchange(changed, {}); }

private:
  using Key = FunctionKeys::Key;

  // The properties that the verifiers of operations with one name check.
  enum class Kind {
    Unknown,
    Plain,       // Only the operation.
    OfConstants, // Also constant operands.
    OfParent,    // Also the enclosing operation.
    OfMeshes,    // Also the meshes of the module, enclosing manual computations, and the sharding of an operand.
    OfGrids,     // Also the grids of the module, as a user of their symbols.
    Call,        // Also the called function.
    Edge,        // Also the definition of its operand, and whether the operand has other uses.
    Container,   // Its own types, and the arguments and terminators of its blocks.
  };

  // The kind of change of an operation that is verified alone.
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
    const void *manual; // The enclosing manual computations.
    MlirBlock block;
  };

  // The identifier with the name of a function, and its attributes with the name and the type.
  struct Function {
    MlirIdentifier name;
    MlirAttribute symbol, type;
  };

  // The symbols of a module. Maps with a node for each function would take most of the time to read a module of many.
  struct Symbols {
    MlirOperation module;
    const void *others = nullptr; // The number of the module's meshes and grids.
    std::vector<Function> functions;
    PointerMap byOperation, byName;     // The indices of functions; of equal names the last one.
    std::uint64_t functionsContent = 0; // A hash of all names and types.
    bool areDistinct = true;

    // Returns the type of the function of that name; null if there is none.
    MlirAttribute typeOf(MlirIdentifier name) const {
      const std::int32_t found = byName.find(name.pointer);
      return found == PointerMap::absent ? MlirAttribute{} : functions[found].type;
    }
  };

  static constexpr std::int32_t noSignature = -1;

  Verdict run(MlirOperation root, bool accepting);
  bool beginIn(MlirOperation root);
  bool hasSameSymbol(MlirOperation function) const;
  std::vector<MlirOperation> outermostFirst(const std::vector<MlirOperation> &ops);
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
  bool isVerifiedAround(MlirOperation op) const;
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
  Signatures symbolSignatures; // Leave out attributes that no user of a symbol checks.
  PointerMap numbersOfNames;
  std::deque<Name> names; // By number; the addresses of elements are stable.
  std::unordered_set<std::uint64_t> leaves;
  std::unordered_set<Key, PointersHash> specialLeaves, containers, functions, wholes;

  OpContents contents;
  std::vector<Searched> changed;
  std::vector<MlirOperation> unverified; // The sdy operations of unknown kinds, while operations are accepted.

  // The state of a run.
  bool accepting = false;
  bool remembers = false; // Whether a hash of each operation is kept.
  std::unordered_set<const void *> verifiedByHost; // Containers, with the operations in their regions.
  PointerNumbers visitedBodies;                    // Containers of which the operations in the regions were visited.
  Symbols symbols;         // The symbols of the module that encloses the root.
  Symbols verifiedSymbols; // The symbols of the last valid module.
  bool keepsSymbols = false;
  bool areSymbolsRead = false; // Whether the symbols were read since `keepsSymbols` was set.
  bool hasEdges = false;              // Whether the last run found an edge.
  PointerNumbers visitedUsers;        // The users of operations that are verified alone.
  PointerNumbers withoutEdge;         // Values that are not used by an edge.
  MlirOperation lastParent;           // The last parent of an operation that is verified alone; many have the same one.
  Around lastAround;
  std::unordered_map<Key, std::int32_t, PointersHash> symbolNumbers, manualNumbers;
};

} // namespace mlir_shard
