// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "bindings.h"
#include "ir/host_library.h"
#include "ir/walk.h"
#include "verification/verified_ops.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <vector>

namespace py = pybind11;

namespace mlir_shard {
namespace {

// Names of attributes, each with the number of its likeness.
using AttributeNames = std::vector<std::pair<std::string, int>>;

// The verified operations of one context, that of the first operation.
class Verification {
public:
  Verification(SharedLibrary library, std::vector<std::string> ignored,
               VerifiedOps::ShardingOfResults shardingOfResults)
      : library(std::move(library)), ignored(std::move(ignored)), shardingOfResults(std::move(shardingOfResults)) {}

  std::optional<bool> verify(const py::capsule &op) {
    return toPython(known(op).verify(host.operation(op)));
  }

  std::optional<bool> verifyChanged(const py::capsule &root, const std::vector<py::capsule> &changed,
                                    const std::vector<py::capsule> &moved,
                                    const std::vector<py::capsule> &attributed) {
    return toPython(known(root).verifyChanged(host.operation(root), host.operations(changed), host.operations(moved),
                                              host.operations(attributed)));
  }

  bool setKeepsSymbols(const py::capsule &op, bool keeps) { return known(op).setKeepsSymbols(keeps); }

  std::vector<py::capsule> accept(const py::capsule &op) {
    std::vector<py::capsule> unverified;
    for (const MlirOperation one : known(op).accept(host.operation(op)))
      unverified.push_back(host.capsule(one));
    return unverified;
  }

  std::vector<py::tuple> newAttributeUses(const std::vector<py::capsule> &changed,
                                          const std::vector<py::capsule> &attributed,
                                          const AttributeNames &names,
                                          const std::vector<std::string> &scopes) {
    std::vector<Searched> searched;
    searched.reserve(changed.size() + attributed.size());
    for (const py::capsule &op : changed)
      searched.push_back({host.operation(op), true});
    for (const py::capsule &op : attributed)
      searched.push_back({host.operation(op), false});
    return newUses(searched, names, scopes);
  }

  std::vector<py::tuple> changedAttributeUses(const AttributeNames &names,
                                              const std::vector<std::string> &scopes) {
    return verified ? newUses(verified->takeChanged(), names, scopes) : std::vector<py::tuple>();
  }

  void forget() {
    seenUses.clear();
    verified.reset();
  }

private:
  std::vector<py::tuple> newUses(const std::vector<Searched> &searched,
                                 const AttributeNames &names,
                                 const std::vector<std::string> &scopes) {
    std::vector<AttributeQuery> queries;
    for (const auto &[name, likeness] : names)
      queries.push_back({name, static_cast<Likeness>(likeness)});
    std::vector<py::tuple> uses;
    for (const AttributeUse &use : distinctAttributeUses(capi, searched, queries, scopes, seenUses))
      uses.push_back(
          py::make_tuple(host.capsule(use.op), queries[use.query].name, static_cast<int>(use.place), use.index));
    return uses;
  }

  static std::optional<bool> toPython(VerifiedOps::Verdict verdict) {
    return verdict == VerifiedOps::Verdict::Unknown ? std::nullopt
                                                    : std::optional(verdict == VerifiedOps::Verdict::Valid);
  }

  VerifiedOps &known(const py::capsule &op) {
    if (!verified)
      verified.emplace(capi, capi.mlirOperationGetContext(host.operation(op)), ignored, shardingOfResults);
    return *verified;
  }

  SharedLibrary library;
  const Capi &capi = library->capi;
  const Capsules &host = library->capsules;
  std::vector<std::string> ignored;
  VerifiedOps::ShardingOfResults shardingOfResults;
  std::optional<VerifiedOps> verified;
  SeenUses seenUses;
};

} // namespace

void defineVerification(py::module_ &module) {
  py::class_<Verification>(module, "Verification", "What is known to be valid in one context, while that lives.")
      .def(py::init<SharedLibrary, std::vector<std::string>, VerifiedOps::ShardingOfResults>(), py::arg("library"),
           py::arg("ignored"), py::arg("sharding_of_results"))
      .def("verify", &Verification::verify, py::arg("op"),
           "Whether all in an operation is valid; if not, the host has emitted an error. None where that is not known,\n"
           "and the host has to verify the whole.")
      .def("verify_changed", &Verification::verifyChanged, py::arg("root"), py::arg("changed"), py::arg("moved"),
           py::arg("attributed"),
           "The same where nothing else has changed since: operations that were made or given other operands, types or\n"
           "regions, operations that were moved or took the place of others with the same types, and operations that were\n"
           "given other attributes.")
      .def("set_keeps_symbols", &Verification::setKeepsSymbols, py::arg("op"), py::arg("keeps"),
           "Whether to assume from now on that of the symbols around `op` only operations that are verified change. Returns\n"
           "the value before.")
      .def("accept", &Verification::accept, py::arg("op"),
           "Remembers that the host has found an operation valid. Returns one operation of each kind of sdy in it that was\n"
           "not known: the host may not have called their verifiers.")
      .def("new_attribute_uses", &Verification::newAttributeUses, py::arg("changed"), py::arg("attributed"),
           py::arg("names"), py::arg("scopes"),
           "The uses of discardable attributes as `Host.attribute_uses` gives them, without those that are like one of a\n"
           "call before: those inside of operations that were made or changed, and of those that were given others.")
      .def("changed_attribute_uses", &Verification::changedAttributeUses, py::arg("names"), py::arg("scopes"),
           "The same of the operations that were found to have changed by the last call of `verify` or `accept`, in one call.")
      .def("forget", &Verification::forget, "Has nothing be known.");
}

} // namespace mlir_shard
