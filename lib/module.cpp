// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The Python module mlir_shard._native: what has to look at every character or every operation of a module.

#include "capi.h"
#include "fixpoint.h"
#include "module_arrays.h"
#include "source_map.h"
#include "text.h"
#include "walk.h"

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <stdexcept>
#include <tuple>

namespace py = pybind11;
using namespace mlir_shard;

namespace {

// The characters of a str that holds one byte a character (ASCII or Latin-1), without a copy.
std::string_view view(const py::str &text) {
  if (PyUnicode_KIND(text.ptr()) != PyUnicode_1BYTE_KIND)
    throw py::value_error("the text has characters beyond Latin-1");
  return {static_cast<const char *>(PyUnicode_DATA(text.ptr())),
          static_cast<std::size_t>(PyUnicode_GET_LENGTH(text.ptr()))};
}

std::vector<std::size_t> findNamesIn(const py::str &text, const std::vector<std::string> &namespaces) {
  return findNames(view(text), {namespaces.begin(), namespaces.end()});
}

std::ptrdiff_t findClosingIn(const py::str &text, std::size_t open) {
  std::string_view characters = view(text);
  if (open >= characters.size())
    throw py::index_error("no bracket at " + std::to_string(open));
  std::size_t close = findClosing(characters, open);
  return close == std::string_view::npos ? -1 : static_cast<std::ptrdiff_t>(close);
}

// MLIR's C API in the library that the bindings use, for objects the bindings hand out as capsules.
class Host {
public:
  Host(const std::string &library, const std::string &capsulePrefix)
      : capi(library), operationCapsule(capsulePrefix + "Operation._CAPIPtr"),
        attributeCapsule(capsulePrefix + "Attribute._CAPIPtr"), valueCapsule(capsulePrefix + "Value._CAPIPtr") {}

  void moveLocationsOf(const py::capsule &op, const std::string &buffer, const std::string &file,
                       const SourceMap &map) const {
    moveLocations(capi, operation(op), buffer, file, map);
  }

  std::vector<py::tuple> attributeUses(const py::capsule &op, const std::vector<std::pair<std::string, bool>> &names,
                                       const std::vector<std::string> &scopes) const {
    std::vector<AttributeQuery> queries;
    for (const auto &[name, alike] : names)
      queries.push_back({name, alike});
    std::vector<py::tuple> uses;
    for (const AttributeUse &use : distinctAttributeUses(capi, operation(op), queries, scopes))
      uses.push_back(
          py::make_tuple(capsule(use.op), queries[use.query].name, static_cast<int>(use.place), use.index));
    return uses;
  }

  std::unique_ptr<ModuleArrays> read(const py::capsule &op, const std::vector<std::string> &ignored) const {
    return std::make_unique<ModuleArrays>(capi, operation(op), ignored);
  }

  void setAttribute(const ModuleArrays &arrays, const std::vector<std::size_t> &ops, const std::string &name,
                    const py::capsule &attribute) const {
    MlirAttribute value{pointer(attribute, attributeCapsule)};
    for (std::size_t op : ops)
      capi.mlirOperationSetDiscardableAttributeByName(arrays.ops.at(op), toStringRef(name), value);
  }

  MlirOperation operation(const py::capsule &capsule) const { return {pointer(capsule, operationCapsule)}; }
  MlirValue value(const py::capsule &capsule) const { return {pointer(capsule, valueCapsule)}; }
  py::capsule capsule(MlirOperation op) const { return make(op.pointer, operationCapsule); }
  py::capsule capsule(MlirAttribute attribute) const { return make(attribute.pointer, attributeCapsule); }
  py::capsule capsule(MlirValue value) const { return make(value.pointer, valueCapsule); }

private:
  static void *pointer(const py::capsule &capsule, const std::string &name) {
    void *found = PyCapsule_GetPointer(capsule.ptr(), name.c_str());
    if (!found)
      throw py::error_already_set();
    return found;
  }

  // The capsule does not own its name, so it must not outlive the host, which lives as long as the process.
  static py::capsule make(const void *pointer, const std::string &name) {
    return py::reinterpret_steal<py::capsule>(PyCapsule_New(const_cast<void *>(pointer), name.c_str(), nullptr));
  }

  Capi capi;
  std::string operationCapsule, attributeCapsule, valueCapsule;
};

Fixpoint::States runFixpoint(
    const Fixpoint &fixpoint, Fixpoint::States states, const Fixpoint::Step &step,
    const std::function<std::vector<std::tuple<std::int32_t, std::int32_t, bool, bool>>(std::int32_t, std::int32_t)>
        &follow) {
  fixpoint.run(states, step, [&](std::int32_t value, std::int32_t state) {
    std::vector<Fixpoint::Following> followings;
    for (const auto &[other, otherState, onlyIfUnknown, visits] : follow(value, state))
      followings.push_back({other, otherState, onlyIfUnknown, visits});
    return followings;
  });
  return states;
}

} // namespace

PYBIND11_MODULE(_native, module) {
  module.doc() = "The native core: passes over the characters and the operations of whole modules.";

  module.def("find_names", &findNamesIn, py::arg("text"), py::arg("namespaces"),
             "The offsets of the names of the given dialects in MLIR text, outside of strings and comments.");
  module.def("find_closing", &findClosingIn, py::arg("text"), py::arg("open"),
             "The offset of the bracket that closes the one at `open`, or -1.");

  py::class_<SourceMap>(module, "SourceMap", "Positions of translated text in the text it came from.")
      .def(py::init<>())
      .def("add", &SourceMap::add, py::arg("line"), py::arg("host_column"), py::arg("user_column"), py::arg("moves"))
      .def("to_user", [](const SourceMap &map, unsigned line, unsigned column) { return map.toUser({line, column}); },
           py::arg("line"), py::arg("column"))
      .def("__bool__", [](const SourceMap &map) { return !map.empty(); });

  py::class_<Groups>(module, "Groups", "Numbers in groups: group i is numbers[start[i]:start[i + 1]].")
      .def_readonly("start", &Groups::start)
      .def_readonly("numbers", &Groups::numbers);

  py::class_<ModuleArrays>(module, "ModuleArrays", "The operations of a module in pre-order, as flat arrays.")
      .def("__len__", [](const ModuleArrays &arrays) { return arrays.ops.size(); })
      .def_readonly("parents", &ModuleArrays::parents)
      .def_readonly("signatures", &ModuleArrays::signatures)
      .def_readonly("operands", &ModuleArrays::operands)
      .def_readonly("results", &ModuleArrays::results)
      .def_readonly("definers", &ModuleArrays::definers);

  py::class_<Fixpoint>(module, "Fixpoint", "Steps over nodes that share values, until none changes a value's state.")
      .def(py::init<std::size_t, std::int32_t, const std::vector<std::int32_t> &>(), py::arg("value_count"),
           py::arg("constant"), py::arg("tied"),
           "The value `constant` never changes; changes of the values in `tied` are followed.")
      .def("add", &Fixpoint::add, py::arg("kind"), py::arg("uses"), py::arg("definitions"))
      .def("run", &runFixpoint, py::arg("states"), py::arg("step"), py::arg("follow"),
           "The states of all values at the fixpoint, from those before.\n\n"
           "`step(kind, states)` gives the states of a node's values after it, or None where all stay; it is asked\n"
           "once for each distinct input, and not where all states are -1. `follow(value, state)` gives what the\n"
           "values tied to one do: (value, state, only if its state is -1, whether nodes around it are visited).");

  py::class_<Host>(module, "Host", "The host's C API.")
      .def(py::init<const std::string &, const std::string &>(), py::arg("library"), py::arg("capsule_prefix"))
      .def("move_locations", &Host::moveLocationsOf, py::arg("op"), py::arg("buffer"), py::arg("file"), py::arg("map"),
           "Turns locations in a parsed buffer into locations in the user's file.")
      .def("attribute_uses", &Host::attributeUses, py::arg("op"), py::arg("names"), py::arg("scopes"),
           "The uses of discardable attributes as (operation, name, place, index), the place being 0 for the operation,\n"
           "1 for an argument and 2 for a result; `names` says with each whether of uses that are alike one will do.")
      .def("read", &Host::read, py::arg("op"), py::arg("ignored"), py::keep_alive<0, 1>(),
           "Reads what is under an operation; attributes named in `ignored` do not count in signatures.")
      .def("representatives",
           [](const Host &host, const ModuleArrays &arrays) {
             std::vector<py::capsule> found;
             for (MlirOperation op : arrays.representatives)
               found.push_back(host.capsule(op));
             return found;
           }, py::arg("arrays"), "The first operation of each signature.")
      .def("operation", [](const Host &host, const ModuleArrays &arrays,
                           std::size_t op) { return host.capsule(arrays.ops.at(op)); }, py::arg("arrays"), py::arg("op"))
      .def("value", [](const Host &host, const ModuleArrays &arrays,
                       std::size_t value) { return host.capsule(arrays.values.at(value)); },
           py::arg("arrays"), py::arg("value"))
      .def("number_of", [](const Host &host, const ModuleArrays &arrays,
                           const py::capsule &value) { return arrays.numberOf(host.value(value)); },
           py::arg("arrays"), py::arg("value"), "The number of a value, -1 for one that is not in the module.")
      .def("attributes", [](const Host &host, const ModuleArrays &arrays, const std::string &name) {
             std::vector<MlirAttribute> distinct;
             std::vector<std::int32_t> numbers = arrays.attributesOf(name, distinct);
             std::vector<py::capsule> capsules;
             for (MlirAttribute attribute : distinct)
               capsules.push_back(host.capsule(attribute));
             return py::make_tuple(std::move(numbers), std::move(capsules));
           }, py::arg("arrays"), py::arg("name"),
           "For each operation the number of its discardable attribute among the distinct ones, or -1; and these.")
      .def("set_attribute", &Host::setAttribute, py::arg("arrays"), py::arg("ops"), py::arg("name"),
           py::arg("attribute"), "Sets a discardable attribute on operations.");
}
