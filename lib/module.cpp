// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The Python module mlir_shard._native: what has to look at every character or every operation of a module.

#include "capi.h"
#include "source_map.h"
#include "text.h"
#include "walk.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <stdexcept>

namespace py = pybind11;
using namespace mlir_shard;

namespace {

// The characters of a str that holds one byte a character (ASCII or Latin-1), without a copy.
std::string_view view(const py::str &text) {
  if (PyUnicode_KIND(text.ptr()) != PyUnicode_1BYTE_KIND)
    throw py::value_error("the text has characters beyond Latin-1");
  return {static_cast<const char *>(PyUnicode_DATA(text.ptr())), static_cast<std::size_t>(PyUnicode_GET_LENGTH(text.ptr()))};
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

// MLIR's C API in the library that the bindings use, for operations the bindings hand out as capsules.
class Host {
public:
  Host(const std::string &library, std::string capsuleName) : capi(library), capsuleName(std::move(capsuleName)) {}

  void moveLocationsOf(const py::capsule &op, const std::string &buffer, const std::string &file,
                       const SourceMap &map) const {
    moveLocations(capi, fromCapsule(op), buffer, file, map);
  }

  std::vector<py::tuple> attributeUses(const py::capsule &op, const std::vector<std::pair<std::string, bool>> &names,
                                       const std::vector<std::string> &scopes) const {
    std::vector<AttributeQuery> queries;
    for (const auto &[name, alike] : names)
      queries.push_back({name, alike});
    std::vector<py::tuple> uses;
    for (const AttributeUse &use : distinctAttributeUses(capi, fromCapsule(op), queries, scopes))
      uses.push_back(py::make_tuple(toCapsule(use.op), queries[use.query].name, static_cast<int>(use.place), use.index));
    return uses;
  }

private:
  MlirOperation fromCapsule(const py::capsule &capsule) const {
    void *pointer = PyCapsule_GetPointer(capsule.ptr(), capsuleName.c_str());
    if (!pointer)
      throw py::error_already_set();
    return {pointer};
  }

  py::capsule toCapsule(MlirOperation op) const {
    return py::reinterpret_steal<py::capsule>(
        PyCapsule_New(const_cast<void *>(op.pointer), capsuleName.c_str(), nullptr));
  }

  Capi capi;
  std::string capsuleName;
};

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

  py::class_<Host>(module, "Host", "The host's C API.")
      .def(py::init<const std::string &, std::string>(), py::arg("library"), py::arg("capsule_name"))
      .def("move_locations", &Host::moveLocationsOf, py::arg("op"), py::arg("buffer"), py::arg("file"), py::arg("map"),
           "Turns locations in a parsed buffer into locations in the user's file.")
      .def("attribute_uses", &Host::attributeUses, py::arg("op"), py::arg("names"), py::arg("scopes"),
           "The uses of discardable attributes as (operation, name, 0 on it | 1 on an argument | 2 on a result, index);\n"
           "`names` says with each name whether of uses that are alike one will do.");
}
