// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Conversion between MLIR objects and the capsules of the host's Python bindings.
#pragma once

#include "ir/capi.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <vector>

namespace mlir_shard {

// Creates and reads capsules. Capsules do not own their names, so they must not outlive the object that created them.
class Capsules {
public:
  using Capsule = pybind11::capsule;

  // `prefix` is the part of a capsule's name before the kind of its object.
  explicit Capsules(const std::string &prefix)
      : operationName(prefix + "Operation._CAPIPtr"), moduleName(prefix + "Module._CAPIPtr"),
        contextName(prefix + "Context._CAPIPtr"), attributeName(prefix + "Attribute._CAPIPtr"),
        typeName(prefix + "Type._CAPIPtr"), valueName(prefix + "Value._CAPIPtr") {}

  MlirContext context(const Capsule &capsule) const { return {pointer(capsule, contextName)}; }
  MlirOperation operation(const Capsule &capsule) const { return {pointer(capsule, operationName)}; }
  MlirAttribute attribute(const Capsule &capsule) const { return {pointer(capsule, attributeName)}; }
  MlirValue value(const Capsule &capsule) const { return {pointer(capsule, valueName)}; }

  Capsule capsule(MlirModule module) const { return make(module.pointer, moduleName); }
  Capsule capsule(MlirOperation op) const { return make(op.pointer, operationName); }
  Capsule capsule(MlirAttribute attribute) const { return make(attribute.pointer, attributeName); }
  Capsule capsule(MlirType type) const { return make(type.pointer, typeName); }
  Capsule capsule(MlirValue value) const { return make(value.pointer, valueName); }

  MlirAttribute attribute(const std::optional<Capsule> &capsule) const {
    return capsule ? attribute(*capsule) : MlirAttribute{};
  }

  template <typename Handle> std::vector<Capsule> capsules(const std::vector<Handle> &handles) const {
    std::vector<Capsule> found;
    found.reserve(handles.size());
    for (Handle handle : handles)
      found.push_back(capsule(handle));
    return found;
  }
  std::vector<MlirOperation> operations(const std::vector<Capsule> &capsules) const {
    std::vector<MlirOperation> found;
    found.reserve(capsules.size());
    for (const Capsule &one : capsules)
      found.push_back(operation(one));
    return found;
  }

private:
  static void *pointer(const Capsule &capsule, const std::string &name) {
    void *found = PyCapsule_GetPointer(capsule.ptr(), name.c_str());
    if (!found)
      throw pybind11::error_already_set();
    return found;
  }
  static Capsule make(const void *pointer, const std::string &name) {
    return pybind11::reinterpret_steal<Capsule>(PyCapsule_New(const_cast<void *>(pointer), name.c_str(), nullptr));
  }

  std::string operationName, moduleName, contextName, attributeName, typeName, valueName;
};

} // namespace mlir_shard
