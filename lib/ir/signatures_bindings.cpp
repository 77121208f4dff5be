// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "bindings.h"
#include "ir/host_library.h"
#include "ir/signatures.h"
#include "ir/size_pattern.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace mlir_shard {
namespace {

// The signatures of operations of one context, each computed individually.
class OpSignatures {
public:
  OpSignatures(SharedLibrary library, std::vector<std::string> ignored)
      : library(std::move(library)), ignored(std::move(ignored)) {}

  std::int32_t of(const Capsules::Capsule &capsule) {
    const MlirOperation op = library->capsules.operation(capsule);
    return madeFor(op, exact, {}).of(op);
  }

  std::optional<std::pair<std::int32_t, std::vector<std::int64_t>>> ofAnySizes(const Capsules::Capsule &capsule) {
    const MlirOperation op = library->capsules.operation(capsule);
    std::vector<MlirType> types;
    readTypes(library->capi, op, types);
    auto sizes = staticSizes(library->capi, types);
    if (!sizes)
      return std::nullopt;
    return std::pair(madeFor(op, anySizes, [](std::string_view) { return true; }).of(op), std::move(*sizes));
  }

private:
  // Returns the signatures, which are created with the context of the first operation.
  Signatures &madeFor(MlirOperation op, std::unique_ptr<Signatures> &signatures, AnySizes areAny) const {
    const Capi &capi = library->capi;
    if (!signatures)
      signatures = std::make_unique<Signatures>(capi, capi.mlirOperationGetContext(op), ignored, std::move(areAny));
    return *signatures;
  }

  SharedLibrary library;
  std::vector<std::string> ignored;
  std::unique_ptr<Signatures> exact, anySizes;
};

} // namespace

void defineSignatures(py::module_ &module) {
  py::class_<OpSignatures>(module, "OpSignatures",
                           "Numbers of the signatures of operations of one context: name, types and attributes.")
      .def(py::init<SharedLibrary, std::vector<std::string>>(), py::arg("library"), py::arg("ignored"),
           "Attributes named in `ignored` do not count.")
      .def("of", &OpSignatures::of, py::arg("op"), "The number of an operation's signature.")
      .def("of_any_sizes", &OpSignatures::ofAnySizes, py::arg("op"),
           "The number of the signature in which sizes of dimensions count in part only, as for `Host.read`, and the\n"
           "sizes of the dimensions of operands, then of results. None if one is dynamic, or a tensor has no rank.");
}

} // namespace mlir_shard
