// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "bindings.h"
#include "ir/attributes.h"
#include "ir/below.h"
#include "ir/host_library.h"
#include "ir/function_signature.h"
#include "ir/walk.h"
#include "rewriting/common_ops.h"
#include "rewriting/constants.h"
#include "rewriting/inlining.h"
#include "rewriting/merge.h"
#include "rewriting/replacement.h"
#include "rewriting/unused.h"

#include <pybind11/functional.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace mlir_shard {
namespace {

using Capsule = Capsules::Capsule;
using NamedCapsules = std::vector<std::pair<std::string, Capsule>>;
using OptionalCapsules = std::vector<std::optional<Capsule>>;

// Reads and changes many operations by MLIR's C API, in the library that the bindings use.
class Editor {
public:
  explicit Editor(SharedLibrary library) : library(std::move(library)) {}

  std::vector<std::vector<Capsule>> namedInEach(const std::vector<Capsule> &ops,
                                                const std::vector<std::string> &names) const {
    std::vector<std::vector<Capsule>> found;
    found.reserve(ops.size());
    for (const MlirOperation op : host.operations(ops))
      found.push_back(host.capsules(operationsNamed(capi, op, names, false)));
    return found;
  }

  py::tuple contents(const std::vector<Capsule> &ops, bool alone) const {
    Contents found = contentsOf(capi, host.operations(ops), alone);
    return py::make_tuple(std::move(found.operations), std::move(found.attributes), found.hasBranches,
                          found.hasEmptyTensors);
  }

  py::tuple attributeColumnsOf(const std::vector<Capsule> &ops, const std::vector<std::string> &names) const {
    AttributeColumns found = attributeColumns(capi, host.operations(ops), names);
    return py::make_tuple(std::move(found.columns), host.capsules(found.distinct));
  }

  std::vector<Capsule> distinctAttributesBelow(const Capsule &op, const std::string &name,
                                               const std::vector<std::string> &holders) const {
    return host.capsules(distinctAttributes(capi, host.operation(op), {name, holders}));
  }

  bool mayHaveUnusedBelow(const Capsule &op, const std::vector<std::string> &ofSdy) const {
    return mayHaveUnused(capi, host.operation(op), ofSdy);
  }

  py::tuple eliminateCommonBelow(const Capsule &op, const PurityOfNames &purities,
                                 const std::function<Purity(Capsule)> &ofOperation) const {
    const Eliminated found = eliminateCommonOps(capi, host.operation(op), purities, [&](MlirOperation one) {
      return ofOperation(host.capsule(one));
    });
    return py::make_tuple(found.isAny, host.capsules(found.kept));
  }

  bool hoistConstantsBelow(const Capsule &op, const std::vector<std::string> &names,
                           const std::vector<std::string> &isolated) const {
    return hoistConstants(capi, host.operation(op), names, isolated);
  }

  bool eraseUnusedBelow(const Capsule &op, const std::vector<std::string> &pure, const std::vector<std::string> &others,
                        const std::function<bool(Capsule)> &isPure) const {
    return eraseUnused(capi, host.operation(op), pure, others,
                       [&](MlirOperation found) { return isPure(host.capsule(found)); });
  }

  void removeAttributesBelow(const Capsule &op, const std::string &name) const {
    removeAttributes(capi, host.operation(op), name);
  }

  py::tuple replaceAttributesBelow(const Capsule &op, const std::string &name, const std::vector<std::string> &holders,
                                   const std::function<Capsule(Capsule)> &replaced) const {
    const ReplacedAttributes found =
        replaceAttributes(capi, host.operation(op), {name, holders}, [&](MlirAttribute attribute) {
          return host.attribute(replaced(host.capsule(attribute)));
        });
    return py::make_tuple(found.isAny, host.capsules(found.holders));
  }

  py::tuple signatureColumnOf(const Capsule &function, Side side, const std::string &name) const {
    SignatureColumn found = signatureColumn(capi, host.operation(function), side, name);
    return py::make_tuple(std::move(found.attributes), host.capsules(found.distinctAttributes), std::move(found.types),
                          host.capsules(found.distinctTypes));
  }

  void setSignatureColumnOf(const Capsule &function, Side side, const std::string &name,
                            const OptionalCapsules &attributes) const {
    setSignatureColumn(capi, host.operation(function), side, name, attributesOf(attributes));
  }

  Capsule replace(const Capsule &op, const std::string &name, const std::optional<std::vector<std::string>> &dropped,
                  const NamedCapsules &added, const std::optional<Capsule> &body) const {
    return host.capsule(replaceOperation(capi, host.operation(op), name, dropped, attributesOf(added),
                                         body ? host.operation(*body) : MlirOperation{}));
  }

  Capsule append(const Capsule &parent, const std::string &name, const NamedCapsules &attributes,
                 const Capsule &body) const {
    return host.capsule(
        appendOperation(capi, host.operation(parent), name, attributesOf(attributes), host.operation(body)));
  }

  Capsule functionType(const Capsule &op) const { return host.capsule(functionTypeOf(capi, host.operation(op))); }
  Capsule terminator(const Capsule &op) const { return host.capsule(terminatorOf(capi, host.operation(op))); }
  std::size_t blocks(const Capsule &op) const { return blockCount(capi, host.operation(op)); }

  std::vector<Capsule> inlineInPlaceOf(const Capsule &call, const Capsule &function) const {
    return host.capsules(inlineBody(capi, host.operation(call), host.operation(function)));
  }

  std::vector<Capsule> addLinksBehind(const std::vector<Capsule> &ops, Side side, const std::string &name,
                                      const std::string &attribute, const std::vector<OptionalCapsules> &attributes,
                                      const std::function<bool(Capsule)> &isWanted) const {
    std::vector<std::vector<MlirAttribute>> given;
    for (const OptionalCapsules &one : attributes)
      given.push_back(attributesOf(one));
    return host.capsules(addLinks(capi, {name, attribute}, side, host.operations(ops), given,
                                  [&](MlirType type) { return isWanted(host.capsule(type)); }));
  }

  py::tuple takeLinksBehind(const std::vector<Capsule> &ops, Side side, const std::string &name,
                            const std::string &attribute) const {
    const TakenLinks taken = takeLinks(capi, {name, attribute}, side, host.operations(ops));
    return py::make_tuple(taken.numbers, host.capsules(taken.attributes), host.capsules(taken.users));
  }

private:
  Attributes attributesOf(const NamedCapsules &capsules) const {
    Attributes attributes;
    for (const auto &[name, capsule] : capsules)
      attributes.emplace_back(name, host.attribute(capsule));
    return attributes;
  }
  std::vector<MlirAttribute> attributesOf(const OptionalCapsules &capsules) const {
    std::vector<MlirAttribute> attributes;
    for (const std::optional<Capsule> &one : capsules)
      attributes.push_back(host.attribute(one));
    return attributes;
  }

  SharedLibrary library;
  const Capi &capi = library->capi;
  const Capsules &host = library->capsules;
};

} // namespace

void defineEditor(py::module_ &module) {
  py::enum_<Side>(module, "Side", "The arguments or the results of an operation.")
      .value("ARGUMENTS", Side::Arguments)
      .value("RESULTS", Side::Results);

  py::enum_<Purity>(module, "Purity", "What the elimination of common sub-expressions may do with an operation.")
      .value("IMPURE", Purity::Impure)
      .value("ISOLATED", Purity::Isolated)
      .value("REMOVABLE", Purity::Removable)
      .value("PURE", Purity::Pure)
      .value("COMMUTATIVE", Purity::Commutative)
      .value("VARIES", Purity::Varies);

  py::class_<Editor>(module, "Editor", "Reads and changes many operations, each distinct attribute looked at once.")
      .def(py::init<SharedLibrary>(), py::arg("library"))
      .def("named_in_each", &Editor::namedInEach, py::arg("ops"), py::arg("names"),
           "For each operation those under it that have one of the names, in pre-order.")
      .def("contents", &Editor::contents, py::arg("ops"), py::arg("alone") = false,
           "The names of operations and of those under them, unless they are taken alone, and of their discardable\n"
           "attributes, also in signatures of functions; and whether a region has more than one block.")
      .def("attribute_columns", &Editor::attributeColumnsOf, py::arg("ops"), py::arg("names"),
           "For each name the attribute of each operation, by its number among the distinct ones, -1 for none; and\n"
           "these.")
      .def("distinct_attributes", &Editor::distinctAttributesBelow, py::arg("op"), py::arg("name"), py::arg("holders"),
           "The distinct attributes of an operation and under it that are discardable and called `name`, also in\n"
           "signatures of functions, or are of operations called as one of the `holders`.")
      .def("replace_attributes", &Editor::replaceAttributesBelow, py::arg("op"), py::arg("name"), py::arg("holders"),
           py::arg("replaced"),
           "Replaces the attributes that `distinct_attributes` gives by what `replaced(attribute)` gives, asked once\n"
           "for each, in the order of the text. Returns whether one has been replaced, and the `holders` with a new one.")
      .def("may_have_unused", &Editor::mayHaveUnusedBelow, py::arg("op"), py::arg("of_sdy"),
           "Whether an operation below one is dead if it has no effects. Of sdy's only those of the given names count.")
      .def("eliminate_common", &Editor::eliminateCommonBelow, py::arg("op"), py::arg("purities"),
           py::arg("of_operation"),
           "Replaces operations below one by equal ones before them and erases unused ones. Returns whether there was\n"
           "any, and those that have replaced others. `purities` are by name; `of_operation(op)` gives the purity of an\n"
           "operation whose name has VARIES.")
      .def("hoist_constants", &Editor::hoistConstantsBelow, py::arg("op"), py::arg("names"), py::arg("isolated"),
           "Moves the constants below an operation that have one of the names to the front of the isolated operation\n"
           "around them, and replaces equal ones by the first. Returns whether anything has changed.")
      .def("erase_unused", &Editor::eraseUnusedBelow, py::arg("op"), py::arg("pure"), py::arg("others"),
           py::arg("is_pure"),
           "Erases the operations below one with the names in `pure` that have no used result, the last one first, and of\n"
           "those named in `others` the ones that are pure. Whether there was one.")
      .def("remove_attributes", &Editor::removeAttributesBelow, py::arg("op"), py::arg("name"),
           "Removes the discardable attributes of an operation and below it that are called `name`, or are of\n"
           "the dialect that `name` is, with the dot.")
      .def("signature_column", &Editor::signatureColumnOf, py::arg("function"), py::arg("side"), py::arg("name"),
           "The attribute of a name and the type of each argument or result: the numbers of the attributes, -1 for\n"
           "none, the distinct ones, the numbers of the types, and the distinct ones.")
      .def("set_signature_column", &Editor::setSignatureColumnOf, py::arg("function"), py::arg("side"), py::arg("name"),
           py::arg("attributes"), "Gives each argument or result the attribute of a name, or takes it away.")
      .def("replace", &Editor::replace, py::arg("op"), py::arg("name"), py::arg("dropped"), py::arg("added"),
           py::arg("body"),
           "Puts an operation of another name in the place of one, with its operands, results, location and\n"
           "attributes, but for the `dropped` ones, None for all; `added` ones do not replace those. It takes the\n"
           "body of `body`.")
      .def("append", &Editor::append, py::arg("parent"), py::arg("name"), py::arg("attributes"), py::arg("body"),
           "Puts an operation at the end of the body of `parent`, with the location and the body of `body`.")
      .def("function_type", &Editor::functionType, py::arg("op"),
           "The type from the arguments of the body of an operation to its results, as an attribute.")
      .def("terminator", &Editor::terminator, py::arg("op"), "The last operation in the first block of one.")
      .def("block_count", &Editor::blocks, py::arg("op"), "The number of blocks in the first region of an operation.")
      .def("inline_body", &Editor::inlineInPlaceOf, py::arg("call"), py::arg("function"),
           "Replaces a call by a copy of the operations in the only block of a function, the operands in the place of\n"
           "its arguments. Returns the copies, but for those inside others, and the users of the results; no calls.")
      .def("add_links", &Editor::addLinksBehind, py::arg("ops"), py::arg("side"), py::arg("name"), py::arg("attribute"),
           py::arg("attributes"), py::arg("is_wanted"),
           "Puts an operation of a name between each argument or result of operations and its uses, where its type is\n"
           "wanted, asked once for each, and it has no such use alone yet; with the attributes given for it, if any.\n"
           "Gives those operations.")
      .def("take_links", &Editor::takeLinksBehind, py::arg("ops"), py::arg("side"), py::arg("name"),
           py::arg("attribute"),
           "Removes the operations of a name that are the only use of an argument or result; gives for each of `ops` the\n"
           "numbers of their attributes, -1 for none, these attributes by number, and the users of what was removed.");
}

} // namespace mlir_shard
