// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A module read once into flat arrays, so that what goes over all operations need not go through the IR.
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

// Numbers into one array, in groups: group i is numbers[start[i]] to numbers[start[i + 1]].
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

// The operations under a root in pre-order, the root not among them, and the values they define and use.
//
// Operations that agree in name, types and attributes have the same signature; both kinds of handles stay valid only
// while nothing is erased.
class ModuleArrays {
public:
  // Attributes named in `ignored` do not count in signatures, nor all sizes for the names in `anySizes`: see Signatures.
  ModuleArrays(const Capi &capi, MlirOperation root, const std::vector<std::string> &ignored, AnySizes anySizes = {});

  // Puts copies of prototypes, with as many results, in the place of operations, at their locations. `prototypeOf` is
  // asked once for each signature; none leaves its operations.
  void replaceAll(const std::function<MlirOperation(std::int32_t signature)> &prototypeOf);

  // The number of a value; -1 for one that is not in the module.
  std::int32_t numberOf(MlirValue value) const { return values.find(value.pointer); }

  // The value of a number.
  MlirValue value(std::int32_t number) const { return {values.at(number)}; }

  // What `outermost` may be told of a signature: whether its operations are closed, or that it depends on each.
  enum class Closes { No, Yes, Depends };

  // The operations that are in no closed operation, in pre-order. `closes` is asked once for each signature met.
  std::vector<std::int32_t> outermost(const std::function<Closes(std::int32_t signature)> &closes,
                                      const std::function<bool(std::int32_t op)> &isClosed) const;

  // The numbers of the arguments of the first block in an operation's first region; none where there is none.
  std::vector<std::int32_t> argumentsOf(std::int32_t op) const;

  // The values that pass into and out of an operation with regions: see `Boundary` in Python.
  struct Boundary {
    std::vector<std::int32_t> operands, results;
    std::vector<std::vector<std::int32_t>> arguments, returned;
  };
  Boundary boundaryOf(std::int32_t op) const;

  // Whether each value is an operand once, and no more.
  std::string usedOnce() const;

  // The operations that use a value, each once and in order.
  std::vector<std::int32_t> usersOf(std::int32_t value);

  // Calls `visit` with each operation that uses a value, in order, and the number of the operand.
  template <typename Visit> void eachUse(std::int32_t value, const Visit &visit) {
    findUses();
    for (const std::int32_t *use = uses.begin(value); use != uses.end(value); use += 2)
      visit(use[0], use[1]);
  }

  // The last of the operations that follow each one: of signatures in `follows`, in the same block as the one before, of
  // whose only result each alone has the only use.
  std::vector<std::int32_t> lastFollowing(const std::vector<std::int32_t> &operations, const std::vector<bool> &follows);

  // The only operation that uses each value, and once; -1 for a value without uses, -2 for one with several.
  std::vector<std::int32_t> soleUsers() const;

  // How each value is used: -1 for no use, -3 - s for one use, by an operation of a signature s that is in `movers`, -2 for
  // any other.
  std::vector<std::int32_t> useStates(const std::vector<bool> &movers) const;

  // The operations that have the discardable attribute `name`, each with the number of its own in `distinct`.
  std::vector<std::pair<std::int32_t, std::int32_t>> attributed(const std::string &name,
                                                                std::vector<MlirAttribute> &distinct) const;

  // Sets, among the numbers of all values, those of the results of operations with the discardable attribute `name` to
  // what `numbersOf` gives, asked once for each distinct one.
  void setResultNumbers(const std::string &name,
                        const std::function<std::vector<std::int32_t>(MlirAttribute attribute)> &numbersOf,
                        std::int32_t *valueNumbers) const;

  // For each of the operations the first of them that has the same signature and whose operands and results have the
  // same numbers.
  std::vector<std::int32_t> alike(const std::vector<std::int32_t> &operations, const std::int32_t *valueNumbers) const;

  const Capi &capi;
  std::vector<MlirOperation> ops;
  std::vector<std::int32_t> parents; // The enclosing operation, -1 under the root.
  std::vector<std::int32_t> signatures;
  std::vector<MlirOperation> representatives; // The first operation of each signature.
  Groups operands;
  Groups results;
  PointerNumbers values;
  std::vector<std::int32_t> definers; // The operation a value is a result of, -1 for block arguments.
  MadeOps made;                       // What was put in since by what rewrites by these arrays.

private:
  std::vector<std::int32_t> argumentsOf(MlirBlock block) const;
  // State that is needed only while the operations are read.
  struct Reading {
    Signatures known;
    std::vector<MlirType> typesOfValues; // By number.
    std::vector<MlirType> types;         // Of an operation, as `readTypes` gives them.
  };
  void visit(MlirOperation op, std::int32_t parent, Reading &reading);
  void shrinkToFit();
  void replace(std::int32_t op, MlirOperation by);
  std::int32_t add(MlirValue value, std::int32_t definer, Reading &reading);
  void findUses();

  // Of each value the operations that use it and the numbers of the operands, one behind the other; read when asked for.
  Groups uses;
};

} // namespace mlir_shard
