// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Bindings for parsing and printing modules.

#include "bindings.h"
#include "ir/host_library.h"
#include "ir/walk.h"
#include "text/hidden_attributes.h"
#include "text/host_text.h"
#include "text/source_map.h"
#include "text/text.h"
#include "text/translation.h"

#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <unistd.h>

namespace py = pybind11;

namespace mlir_shard {
namespace {

// Returns the characters of a str that stores one byte per character (ASCII or Latin-1), without a copy.
std::string_view view(const py::str &text) {
  if (PyUnicode_KIND(text.ptr()) != PyUnicode_1BYTE_KIND)
    throw py::value_error("the text has characters beyond Latin-1");
  return {static_cast<const char *>(PyUnicode_DATA(text.ptr())),
          static_cast<std::size_t>(PyUnicode_GET_LENGTH(text.ptr()))};
}

std::vector<std::string_view> views(const std::vector<std::string> &texts) { return {texts.begin(), texts.end()}; }

py::str asStr(std::string_view text) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeLatin1(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr));
}

std::vector<std::size_t> findNamesIn(const py::str &text, const std::vector<std::string> &namespaces) {
  return findNames(view(text), views(namespaces));
}

// Returns a reader that calls the Python object that translates distinct attributes and operations.
Translation::Reader asReader(const py::object &reader) {
  return {
      [=](std::size_t offset) {
        const auto found = reader.attr("attribute")(offset).cast<std::optional<std::pair<py::str, std::size_t>>>();
        return found ? std::optional(std::pair(std::string(view(found->first)), found->second)) : std::nullopt;
      },
      [=](const AbstractOperation &op) {
        return reader.attr("abstract_operation")(asStr(op.text), op.body.has_value())
            .cast<std::optional<OperationTemplate>>();
      },
      [=](std::size_t offset) { return reader.attr("operation")(offset).cast<std::optional<std::size_t>>(); }};
}

std::ptrdiff_t findClosingIn(const py::str &text, std::size_t open) {
  std::string_view characters = view(text);
  if (open >= characters.size())
    throw py::index_error("no bracket at " + std::to_string(open));
  std::size_t close = findClosing(characters, open);
  return close == std::string_view::npos ? -1 : static_cast<std::ptrdiff_t>(close);
}

std::optional<std::size_t> findDeepBracketIn(const py::str &text, std::size_t most) {
  const std::size_t found = findDeepBracket(view(text), most);
  return found == std::string_view::npos ? std::nullopt : std::optional(found);
}

void write(const HostText &text, int descriptor) {
  std::string_view rest = text.text();
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) {
      PyErr_SetFromErrno(PyExc_OSError);
      throw py::error_already_set();
    }
    rest.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
}

// Reads and prints modules of the host.
class Assembly {
public:
  explicit Assembly(SharedLibrary library) : library(std::move(library)) {}

  std::optional<py::capsule> parse(const HostText &text, const py::capsule &context, const std::string &file) const {
    const MlirOperation op =
        capi.mlirOperationCreateParse(host.context(context), toStringRef(text.text()), toStringRef(file));
    if (!op)
      return std::nullopt;
    const MlirModule module = capi.mlirModuleFromOperation(op);
    if (!module) {
      capi.mlirOperationDestroy(op);
      return std::nullopt;
    }
    return host.capsule(module);
  }

  void moveLocationsOf(const py::capsule &op, const std::string &buffer, const std::string &file,
                       const HostText &text) const {
    if (buffer != file || !text.positions().empty())
      moveLocations(capi, host.operation(op), buffer, file, text.positions());
  }

  // Returns the printed text. Raises UnicodeDecodeError if it is not UTF-8.
  py::object print(const py::capsule &op, bool generic, bool debugInfo, bool prettyDebugInfo, bool localScope,
                   std::optional<std::intptr_t> largeElementsLimit, bool assumeVerified, bool skipRegions,
                   const AttributesOfOperations &hidden) const {
    // The host verifies an operation before it prints it in custom form, and it is invalid without these attributes.
    std::optional<HiddenAttributes> without;
    if (generic || assumeVerified)
      without.emplace(capi, host.operation(op), hidden);
    const MlirOpPrintingFlags flags = capi.mlirOpPrintingFlagsCreate();
    if (largeElementsLimit)
      capi.mlirOpPrintingFlagsElideLargeElementsAttrs(flags, *largeElementsLimit);
    if (debugInfo)
      capi.mlirOpPrintingFlagsEnableDebugInfo(flags, true, prettyDebugInfo);
    if (generic)
      capi.mlirOpPrintingFlagsPrintGenericOpForm(flags);
    if (localScope)
      capi.mlirOpPrintingFlagsUseLocalScope(flags);
    if (assumeVerified)
      capi.mlirOpPrintingFlagsAssumeVerified(flags);
    if (skipRegions)
      capi.mlirOpPrintingFlagsSkipRegions(flags);
    std::string printed;
    const auto append = [](MlirStringRef part, void *to) { static_cast<std::string *>(to)->append(toView(part)); };
    capi.mlirOperationPrintWithFlags(host.operation(op), flags, append, &printed);
    capi.mlirOpPrintingFlagsDestroy(flags);
    PyObject *text = PyUnicode_DecodeUTF8(printed.data(), static_cast<Py_ssize_t>(printed.size()), nullptr);
    if (!text)
      throw py::error_already_set();
    return py::reinterpret_steal<py::object>(text);
  }

private:
  SharedLibrary library;
  const Capi &capi = library->capi;
  const Capsules &host = library->capsules;
};

} // namespace

void defineText(py::module_ &module) {
  module.def("find_names", &findNamesIn, py::arg("text"), py::arg("namespaces"),
             "The offsets of the names of the given dialects in MLIR text, outside of strings and comments.");
  module.def("find_closing", &findClosingIn, py::arg("text"), py::arg("open"),
             "The offset of the bracket that closes the one at `open`, or -1.");
  module.def("find_deep_bracket", &findDeepBracketIn, py::arg("text"), py::arg("most"),
             "The offset of the first of the brackets ( [ { that is inside of `most` others.");
  module.def("is_one_module", [](const py::str &text) { return isOneModule(view(text)); }, py::arg("text"),
             "Whether text is one operation `module` in custom syntax, besides aliases and comments; False where that\n"
             "takes more than looking for brackets to tell.");

  py::class_<OperationTemplate>(module, "OperationTemplate",
                                "The translation of operations that differ in the names of values.\n\n"
                                "`before` comes in front of the arguments of the region, `opening` between these and its\n"
                                "body, `closing` behind that, and `behind` at the end. In `before` and `behind`, `%i` is\n"
                                "the name of value i. `arguments` are offsets in the abstract text.")
      .def(py::init([](const py::str &before, std::optional<Span> arguments, const py::str &opening,
                       const py::str &closing, const py::str &behind) {
             return OperationTemplate(view(before), arguments, std::string(view(opening)), std::string(view(closing)),
                                      view(behind));
           }), py::arg("before"), py::arg("arguments"), py::arg("opening"), py::arg("closing"), py::arg("behind"));

  py::class_<Translation>(module, "Translation",
                          "The translation of a text, of which distinct attributes and operations are read in Python.")
      .def(py::init([](const py::str &text, const std::vector<std::string> &dialects,
                       std::unordered_set<std::string> operations, bool isGeneric) {
             return Translation(view(text), views(dialects), std::move(operations), isGeneric);
           }), py::arg("text"), py::arg("dialects"), py::arg("operations"), py::arg("is_generic"),
           py::keep_alive<1, 2>())
      .def("translate", [](Translation &self, std::size_t start, std::size_t end, const py::object &reader) {
             self.translate({start, end}, asReader(reader));
           }, py::arg("start"), py::arg("end"), py::arg("reader"),
           "Adds the pieces for a part of the text. Methods of the reader may call this.")
      .def("add_generated", [](Translation &self, const py::str &text, std::size_t offset) {
             self.pieces().addGenerated(view(text), offset);
           }, py::arg("text"), py::arg("offset"),
           "Adds text of the translation's own for an operation or attribute at an offset of the text.")
      .def("joined", [](const Translation &self) { return asStr(self.pieces().joined()); }, "The translation as text.");

  py::class_<HostText>(module, "HostText", "A translation for the host, which keeps lines, and columns where it can.")
      .def(py::init([](const Translation &translation, const py::str &prelude) {
             return HostText(translation.pieces(), view(prelude));
           }), py::arg("translation"), py::arg("prelude") = py::str(), py::keep_alive<1, 2>())
      .def("write", &write, py::arg("descriptor"), "Writes the text to an open file.")
      .def("to_user", [](const HostText &text, unsigned line, unsigned column) {
             return text.positions().toUser({line, column});
           }, py::arg("line"), py::arg("column"), "The place in the user's text of one in this, lines and columns from 1.")
      .def("__str__", [](const HostText &text) { return asStr(text.text()); });

  py::class_<Assembly>(module, "Assembly", "Reads and prints modules of the host.")
      .def(py::init<SharedLibrary>(), py::arg("library"))
      .def("parse", &Assembly::parse, py::arg("text"), py::arg("context"), py::arg("file"),
           "The module of a text that `is_one_module`, with locations in `file`; None where the host has found an error.")
      .def("move_locations", &Assembly::moveLocationsOf, py::arg("op"), py::arg("buffer"), py::arg("file"),
           py::arg("text"), "Turns locations in a parsed buffer into locations in the user's file.")
      .def("print", &Assembly::print, py::arg("op"), py::arg("generic"), py::arg("debug_info"),
           py::arg("pretty_debug_info"), py::arg("local_scope"), py::arg("large_elements_limit"),
           py::arg("assume_verified"), py::arg("skip_regions"), py::arg("hidden"),
           "The text of an operation as the host prints it, without the `hidden` attributes of operations of some names.");
}

} // namespace mlir_shard
