// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "bindings.h"
#include "ir/host_library.h"
#include "repetition/op_kinds.h"
#include "rewriting/deferral.h"
#include "rewriting/merge.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace mlir_shard {
namespace {

using Capsule = Capsules::Capsule;

// Reads the kinds of operations by MLIR's C API, in the library that the bindings use, and provides functions of them.
class KindReader {
public:
  explicit KindReader(SharedLibrary library) : library(std::move(library)) {}

  std::unique_ptr<OpKinds> read(const Capsule &root, const std::vector<std::string> &names,
                                const std::vector<std::string> &ignored, bool neighbours) const {
    return std::make_unique<OpKinds>(capi, host.operation(root), names, ignored, neighbours);
  }

  std::vector<Capsule> representatives(const OpKinds &kinds) const { return host.capsules(kinds.representatives); }

  std::vector<Capsule> operations(const OpKinds &kinds, const std::vector<bool> &wanted) const {
    std::vector<Capsule> found;
    for (std::size_t i = 0; i < kinds.ops.size(); ++i)
      if (wanted.at(kinds.kinds[i]))
        found.push_back(host.capsule(kinds.ops[i]));
    return found;
  }

  std::vector<Capsule> ofResults(const Capsule &root, const std::vector<std::string> &names,
                                 const std::vector<std::string> &definers, std::intptr_t count, bool once,
                                 const std::vector<std::string> &through) const {
    return host.capsules(operationsOfResults(capi, host.operation(root), names, definers, count, once, through));
  }

  bool dropRepeated(const OpKinds &kinds, const std::vector<std::int32_t> &groups) const {
    std::vector<Droppable> ops;
    for (std::size_t i = 0; i < kinds.ops.size(); ++i)
      if (const std::int32_t group = groups.at(kinds.kinds[i]); group != none)
        ops.push_back({kinds.ops[i], group});
    return mlir_shard::dropRepeated(capi, ops);
  }

  bool merge(const OpKinds &kinds, const std::vector<std::pair<std::int32_t, std::int64_t>> &groups, std::int64_t most,
             const std::function<bool(std::string)> &mayWait,
             const std::function<void(std::vector<Capsule>, Capsule)> &pack) const {
    if (kinds.ops.empty())
      return false;
    std::int32_t next = 0;
    for (const auto &[group, size] : groups)
      next = std::max(next, group + 1);
    std::vector<std::vector<Mergeable>> blocks;
    std::unordered_map<const void *, std::size_t> numbers;
    for (std::size_t i = 0; i < kinds.ops.size(); ++i) {
      const auto [group, size] = groups.at(kinds.kinds[i]);
      if (group == none)
        continue;
      const auto [block, isNew] =
          numbers.emplace(capi.mlirOperationGetBlock(kinds.ops[i]).pointer, blocks.size());
      if (isNew)
        blocks.emplace_back();
      blocks[block->second].push_back({kinds.ops[i], group == ownGroup ? next++ : group, size});
    }
    GroupMerger merger(capi, capi.mlirOperationGetContext(kinds.ops.front()),
                  [&](const std::vector<MlirOperation> &ops, MlirOperation placeholder) {
                    pack(host.capsules(ops), host.capsule(placeholder));
                  });
    Deferral deferral(capi, most, [&](std::string_view name) { return mayWait(std::string(name)); }, merger);
    bool isChanged = false;
    for (const std::vector<Mergeable> &block : blocks)
      isChanged = deferral.run(block) || isChanged;
    return isChanged;
  }

private:
  static constexpr std::int32_t none = -1, ownGroup = -2;

  SharedLibrary library;
  const Capi &capi = library->capi;
  const Capsules &host = library->capsules;
};

} // namespace

void defineOpKinds(py::module_ &module) {
  py::class_<OpKinds>(module, "OpKinds", "Operations in pre-order, each of a kind.")
      .def_readonly("kinds", &OpKinds::kinds)
      .def("__len__", [](const OpKinds &kinds) { return kinds.ops.size(); });

  py::class_<KindReader>(module, "KindReader", "Reads the kinds of operations, and goes by them.")
      .def(py::init<SharedLibrary>(), py::arg("library"))
      .def("read", &KindReader::read, py::arg("op"), py::arg("names"), py::arg("ignored"), py::arg("neighbours"),
           "The kinds of the operations under one that have one of the names. The values of `ignored` attributes do not\n"
           "count.")
      .def("representatives", &KindReader::representatives, py::arg("kinds"), "The first operation of each kind.")
      .def("operations", &KindReader::operations, py::arg("kinds"), py::arg("wanted"),
           "The operations whose kind is wanted.")
      .def("of_results", &KindReader::ofResults, py::arg("op"), py::arg("names"), py::arg("definers"), py::arg("count"),
           py::arg("once"), py::arg("through"),
           "Returns the operations with one of the names whose first operands are each a result of one of the `definers`,\n"
           "with `once` used once, also through operations whose names are in `through` and whose results are used once.")
      .def("drop_repeated", &KindReader::dropRepeated, py::arg("kinds"), py::arg("groups"),
           "Replaces operations by earlier ones with the same operands, in their block or one around it, of the same\n"
           "group, which `groups` has for each kind: -1 for those to leave, -2 for what no other is equal to, -3 for\n"
           "those that are their operands. Erases those without uses. Whether there was anything to change.")
      .def("merge", &KindReader::merge, py::arg("kinds"), py::arg("groups"), py::arg("most"), py::arg("may_wait"),
           py::arg("pack"),
           "Merges independent operations of a block. `groups` has for each kind a group and a size: those of one group\n"
           "are merged as long as their sizes add up to at most `most`; -1 stands for not being merged,\n"
           "-2 for a group of its own.\n"
           "`may_wait(name)` is whether operations may come later. `pack(ops, placeholder)` replaces an operation with\n"
           "the operands and results of some that have no regions. Whether there was anything to change.");
}

} // namespace mlir_shard
