// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A module read once into flat arrays, so that algorithms over all operations need not traverse the IR.
#pragma once

#include "arrays/made_ops.h"
#include "ir/capi.h"
#include "ir/pointer_map.h"
#include "ir/signatures.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace mlir_shard {

// Numbers in one array, divided into groups: group i is numbers[start[i]] to numbers[start[i + 1]].
struct Groups {
  std::vector<std::int32_t> start{0};
  std::vector<std::int32_t> numbers;

  void endGroup() { start.push_back(static_cast<std::int32_t>(numbers.size())); }
  std::vector<std::int32_t> group(std::size_t number) const {
    return {numbers.begin() + start.at(number), numbers.begin() + start.at(number + 1)};
  }
  const std::int32_t *begin(std::size_t group) const { return numbers.data() + start[group]; }
  const std::int32_t *end(std::size_t group) const { return numbers.data() + start[group + 1]; }

  void shrinkToFit() {
    start.shrink_to_fit();
    numbers.shrink_to_fit();
  }
};

// The operations under a root in pre-order, without the root, and the values that they define and use.
//
// Operations with equal names, types and attributes have the same signature. Handles of operations and values stay
// valid only while nothing is erased.
class ModuleArrays {
public:
  // Signatures leave out attributes named in `ignored`, and some sizes for names with `anySizes`; see Signatures.
  ModuleArrays(const Capi &capi, MlirOperation root, const std::vector<std::string> &ignored, AnySizes anySizes = {});

  // Replaces operations by copies of prototypes, which have as many results, at the same locations. `prototypeOf` is
  // called once for each signature; operations of a signature with a null prototype are kept.
  void replaceAll(const std::function<MlirOperation(std::int32_t signature)> &prototypeOf);

  // Returns the number of a value; -1 if it is not in the module.
  std::int32_t numberOf(MlirValue value) const { return values.find(value.pointer); }

  // Returns the value with a number.
  MlirValue value(std::int32_t number) const { return {values.at(number)}; }

  // Whether the operations of a signature are closed, or this depends on each operation; see `outermost`.
  enum class Closes { No, Yes, Depends };

  // Returns the operations that are in no closed operation, in pre-order. `closes` is called once for each signature.
  std::vector<std::int32_t> outermost(const std::function<Closes(std::int32_t signature)> &closes,
                                      const std::function<bool(std::int32_t op)> &isClosed) const;

  // Returns the numbers of the arguments of the first block in the first region of an operation; empty if it has no
  // block.
  std::vector<std::int32_t> argumentsOf(std::int32_t op) const;

  // The values that pass into and out of an operation with regions; see `Boundary` in Python.
  struct Boundary {
    std::vector<std::int32_t> operands, results;
    std::vector<std::vector<std::int32_t>> arguments, returned;
  };
  Boundary boundaryOf(std::int32_t op) const;

  // Returns for each value whether it is an operand exactly once.
  std::string usedOnce() const;

  // Returns the operations that use a value, each once and in order.
  std::vector<std::int32_t> usersOf(std::int32_t value);

  // Calls `visit` with each operation that uses a value, in order, and with the number of the operand.
  template <typename Visit> void eachUse(std::int32_t value, const Visit &visit) {
    findUses();
    for (const std::int32_t *use = uses.begin(value); use != uses.end(value); use += 2)
      visit(use[0], use[1]);
  }

  // Returns for each operation the last of the chain that follows it. An operation continues the chain if its signature
  // is in `follows`, if it is in the same block as the operation before, and if it is the sole user of that operation's
  // only result.
  std::vector<std::int32_t> lastFollowing(const std::vector<std::int32_t> &operations, const std::vector<bool> &follows);

  // Returns the operation with the only use of each value; -1 for a value without uses, -2 for a value with several
  // uses.
  std::vector<std::int32_t> soleUsers() const;

  // Returns the kind of uses of each value: -1 for no use, -3 - s for one use by an operation of a signature s in
  // `movers`, and -2 otherwise.
  std::vector<std::int32_t> useStates(const std::vector<bool> &movers) const;

  // Returns the operations with the discardable attribute `name`, each with the number of its attribute in `distinct`.
  std::vector<std::pair<std::int32_t, std::int32_t>> attributed(const std::string &name,
                                                                std::vector<MlirAttribute> &distinct) const;

  // Sets the entries of `valueNumbers` for the results of operations with the discardable attribute `name` to the
  // numbers that `numbersOf` returns, which is called once for each distinct attribute.
  void setResultNumbers(const std::string &name,
                        const std::function<std::vector<std::int32_t>(MlirAttribute attribute)> &numbersOf,
                        std::int32_t *valueNumbers) const;

  // Returns for each of the operations the first of them with the same signature whose operands and results have the
  // same numbers.
  std::vector<std::int32_t> alike(const std::vector<std::int32_t> &operations, const std::int32_t *valueNumbers) const;

  // Returns the number of the form of each signature that is `wanted`, -1 for the others. Signatures of a form differ
  // only in sizes, as far as `appendSizePattern` ignores them, and in attributes named in `ignored`.
  std::vector<std::int32_t> formsOfAnySizes(const std::vector<bool> &wanted,
                                            const std::vector<std::string> &ignored) const;

  const Capi &capi;
  std::vector<MlirOperation> ops;
  std::vector<std::int32_t> parents; // The enclosing operation, -1 under the root.
  std::vector<std::int32_t> signatures;
  std::vector<MlirOperation> representatives; // The first operation of each signature.
  Groups operands;
  Groups results;
  PointerNumbers values;
  std::vector<std::int32_t> definers; // The operation that defines each value; -1 for block arguments.
  MadeOps made;                       // The operations that rewrites with these arrays have inserted.

private:
  std::vector<std::int32_t> argumentsOf(MlirBlock block) const;
  // State that is needed only while the operations are read.
  struct Reading {
    Signatures known;
    std::vector<MlirType> typesOfValues; // By value number.
    std::vector<MlirType> types;         // The types of an operation, in the form of `readTypes`.
  };
  void visit(MlirOperation op, std::int32_t parent, Reading &reading);
  void shrinkToFit();
  void replace(std::int32_t op, MlirOperation by);
  std::int32_t add(MlirValue value, std::int32_t definer, Reading &reading);
  void findUses();

  // The operations that use each value and the numbers of the operands, interleaved; computed on first use.
  Groups uses;
};

} // namespace mlir_shard
