// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ir/walk.h"

#include "ir/below.h"
#include "ir/mixed.h"
#include "ir/pointer_map.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace mlir_shard {
namespace {

// Calls `visit` with `op` and all operations in its regions in pre-order, with the state of the enclosing operation:
// `visit` takes the state outside of an operation and returns the state inside.
template <typename State, typename Visit>
void walk(const Capi &capi, MlirOperation op, const State &outer, const Visit &visit) {
  const State inner = visit(op, outer);
  eachChild(capi, op, [&](MlirOperation child) { walk(capi, child, inner, visit); });
}

// Maps locations in the parsed buffer to locations in the user's file.
class LocationMover {
public:
  LocationMover(const Capi &capi, MlirContext context, std::string_view buffer, std::string_view file,
                const SourceMap &map)
      : capi(capi), context(context), buffer(capi.mlirIdentifierGet(context, toStringRef(buffer))), file(file),
        map(map) {}

  // Returns the location that replaces `location`; null if `location` is not in the buffer.
  MlirLocation moved(MlirLocation location) const {
    if (!capi.mlirLocationIsAFileLineColRange(location) ||
        !(capi.mlirLocationFileLineColRangeGetFilename(location) == buffer))
      return {};
    Position position = map.toUser({static_cast<unsigned>(capi.mlirLocationFileLineColRangeGetStartLine(location)),
                                    static_cast<unsigned>(capi.mlirLocationFileLineColRangeGetStartColumn(location))});
    return capi.mlirLocationFileLineColGet(context, toStringRef(file), position.first, position.second);
  }

private:
  const Capi &capi;
  MlirContext context;
  MlirIdentifier buffer;
  std::string_view file;
  const SourceMap &map;
};

// Returns a key for a type: the rank of a ranked tensor as an odd number, which differs from all pointers, and
// otherwise the type itself.
const void *rankOrType(const Capi &capi, MlirType type) {
  if (!capi.mlirTypeIsARankedTensor(type))
    return type.pointer;
  return reinterpret_cast<const void *>(2 * capi.mlirShapedTypeGetRank(type) + 1);
}

bool hasNoElements(const Capi &capi, MlirType type) {
  if (!capi.mlirTypeIsARankedTensor(type))
    return false;
  for (std::intptr_t dim = 0, rank = capi.mlirShapedTypeGetRank(type); dim < rank; ++dim)
    if (capi.mlirShapedTypeGetDimSize(type, dim) == 0)
      return true;
  return false;
}

void setResultRanks(const Capi &capi, MlirOperation op, std::vector<const void *> &ranks) {
  ranks.clear();
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i)
    ranks.push_back(rankOrType(capi, capi.mlirValueGetType(capi.mlirOperationGetResult(op, i))));
}

void setTypePointers(const Capi &capi, MlirOperation op, std::vector<const void *> &types) {
  types.clear();
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumOperands(op); i < count; ++i)
    types.push_back(capi.mlirValueGetType(capi.mlirOperationGetOperand(op, i)).pointer);
  types.push_back(nullptr);
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i)
    types.push_back(capi.mlirValueGetType(capi.mlirOperationGetResult(op, i)).pointer);
}

// Returns a hash of the name, the attributes and the types of an operation.
std::uint64_t hashOf(const Capi &capi, MlirOperation op) {
  std::uint64_t hash = mixed(0, capi.mlirOperationGetName(op).pointer);
  for (std::intptr_t i = 0, count = capi.mlirOperationGetNumAttributes(op); i < count; ++i) {
    const MlirNamedAttribute named = capi.mlirOperationGetAttribute(op, i);
    hash = mixed(mixed(hash, named.name.pointer), named.attribute.pointer);
  }
  std::vector<const void *> types;
  setTypePointers(capi, op, types);
  for (const void *type : types)
    hash = mixed(hash, type);
  return hash;
}

// Hashes of the enclosing operations of given names: the operations inside enclosing operations with equal hashes have
// the same context.
class Scopes {
public:
  Scopes(const Capi &capi, MlirOperation root, const std::vector<std::string> &names)
      : capi(capi), names(identifiers(capi, root, names)) {}

  // Returns the hash inside of an operation, given the hash outside.
  const void *inside(MlirOperation op, const void *outer) const {
    if (!contains(names, capi.mlirOperationGetName(op).pointer))
      return outer;
    std::uint64_t content = mixed(mixed(hashOf(capi, op), op.pointer), outer);
    // Operations in a module refer to the symbols of that module.
    if (toView(capi.mlirIdentifierStr(capi.mlirOperationGetName(op))) == "builtin.module")
      eachChild(capi, op, [&](MlirOperation child) {
        if (!capi.mlirOperationGetFirstRegion(child))
          content = mixed(content, hashOf(capi, child));
      });
    return reinterpret_cast<const void *>(content);
  }

  const void *around(MlirOperation op) const {
    const MlirOperation parent = capi.mlirOperationGetParentOperation(op);
    return parent ? inside(parent, around(parent)) : nullptr;
  }

private:
  const Capi &capi;
  std::vector<const void *> names;
};

} // namespace

void moveLocations(const Capi &capi, MlirOperation root, std::string_view buffer, std::string_view file,
                   const SourceMap &map) {
  LocationMover mover(capi, capi.mlirOperationGetContext(root), buffer, file, map);
  struct Nothing {};
  walk(capi, root, Nothing{}, [&](MlirOperation op, const Nothing &) {
    if (MlirLocation moved = mover.moved(capi.mlirOperationGetLocation(op)))
      capi.mlirOperationSetLocation(op, moved);
    for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
         region = capi.mlirRegionGetNextInOperation(region))
      for (MlirBlock block = capi.mlirRegionGetFirstBlock(region); block; block = capi.mlirBlockGetNextInRegion(block))
        for (std::intptr_t i = 0, count = capi.mlirBlockGetNumArguments(block); i < count; ++i) {
          MlirValue argument = capi.mlirBlockGetArgument(block, i);
          if (MlirLocation moved = mover.moved(capi.mlirValueGetLocation(argument)))
            capi.mlirBlockArgumentSetLocation(argument, moved);
        }
    return Nothing{};
  });
}

std::vector<AttributeUse> distinctAttributeUses(const Capi &capi, const std::vector<Searched> &searched,
                                                const std::vector<AttributeQuery> &queries,
                                                const std::vector<std::string> &scopeNames, SeenUses &seen) {
  if (searched.empty())
    return {};
  const MlirOperation root = searched.front().op;
  MlirContext context = capi.mlirOperationGetContext(root);
  MlirIdentifier functionName = capi.mlirIdentifierGet(context, toStringRef("func.func"));
  const Scopes scopes(capi, root, scopeNames);
  std::vector<MlirIdentifier> names;
  for (const AttributeQuery &query : queries)
    names.push_back(capi.mlirIdentifierGet(context, toStringRef(query.name)));
  std::vector<AttributeUse> uses;
  std::vector<const void *> operationKey; // Reused for all operations and signatures.
  auto add = [&](AttributeUse use, const std::vector<const void *> &key) {
    if (queries[use.query].likeness == Likeness::None || seen.insert(key).second)
      uses.push_back(use);
  };

  auto addSignature = [&](MlirOperation op, const void *scope, std::string_view key, AttributeUse::Place place) {
    MlirAttribute dictionaries = capi.mlirOperationGetAttributeByName(op, toStringRef(key));
    if (!dictionaries)
      return;
    MlirAttribute functionType = capi.mlirOperationGetAttributeByName(op, toStringRef("function_type"));
    MlirType function = capi.mlirTypeAttrGetValue(functionType);
    for (std::intptr_t i = 0, count = capi.mlirArrayAttrGetNumElements(dictionaries); i < count; ++i) {
      MlirAttribute dictionary = capi.mlirArrayAttrGetElement(dictionaries, i);
      MlirType type = place == AttributeUse::Place::Argument ? capi.mlirFunctionTypeGetInput(function, i)
                                                             : capi.mlirFunctionTypeGetResult(function, i);
      for (std::size_t query = 0; query < queries.size(); ++query) {
        if (MlirAttribute attribute =
                capi.mlirDictionaryAttrGetElementByName(dictionary, toStringRef(queries[query].name))) {
          operationKey.assign({attribute.pointer, scope,
                               queries[query].likeness == Likeness::Ranks ? rankOrType(capi, type) : type.pointer,
                               reinterpret_cast<const void *>(place), reinterpret_cast<const void *>(query)});
          add({op, query, place, i}, operationKey);
        }
      }
    }
  };

  const auto visit = [&](MlirOperation op, const void *scope) {
    MlirIdentifier opName = capi.mlirOperationGetName(op);
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumDiscardableAttributes(op); i < count; ++i) {
      const MlirNamedAttribute named = capi.mlirOperationGetDiscardableAttribute(op, i);
      const auto name = std::find(names.begin(), names.end(), named.name);
      if (name == names.end())
        continue;
      const auto query = static_cast<std::size_t>(name - names.begin());
      if (queries[query].likeness == Likeness::Ranks)
        setResultRanks(capi, op, operationKey);
      else
        setTypePointers(capi, op, operationKey);
      operationKey.insert(operationKey.end(),
                          {named.attribute.pointer, scope, reinterpret_cast<const void *>(query)});
      add({op, query, AttributeUse::Place::Operation, 0}, operationKey);
    }
    if (opName == functionName) {
      addSignature(op, scope, "arg_attrs", AttributeUse::Place::Argument);
      addSignature(op, scope, "res_attrs", AttributeUse::Place::Result);
    }
    return scopes.inside(op, scope);
  };
  // The hashes by the enclosing operation; most operations have the same one as the operation before.
  std::unordered_map<const void *, const void *> known;
  const void *parent = nullptr, *scope = nullptr;
  for (const Searched &one : searched) {
    const void *around = capi.mlirOperationGetParentOperation(one.op).pointer;
    if (around != parent || !parent) {
      const auto [found, isNew] = known.try_emplace(around, nullptr);
      if (isNew)
        found->second = scopes.around(one.op);
      parent = around;
      scope = found->second;
    }
    if (one.isInside && capi.mlirOperationGetFirstRegion(one.op))
      walk(capi, one.op, scope, visit);
    else
      visit(one.op, scope);
  }
  return uses;
}

std::vector<MlirOperation> firstOperations(const Capi &capi, MlirOperation root) {
  std::unordered_set<const void *> seen;
  std::vector<MlirOperation> found;
  eachBelow(capi, root, false, [&](MlirOperation op) {
    if (seen.insert(capi.mlirOperationGetName(op).pointer).second)
      found.push_back(op);
  });
  return found;
}

Contents contentsOf(const Capi &capi, const std::vector<MlirOperation> &roots, bool isAlone) {
  Contents found;
  if (roots.empty())
    return found;
  PointerMap seen;
  const auto isNew = [&](const void *pointer) { return seen.insert(pointer, 0).second; };
  PointerMap seenAttributes;
  const auto add = [&](MlirIdentifier name) {
    if (seenAttributes.insert(name.pointer, 0).second)
      found.attributes.emplace_back(toView(capi.mlirIdentifierStr(name)));
  };
  const MlirIdentifier function = capi.mlirIdentifierGet(capi.mlirOperationGetContext(roots.front()), toStringRef("func.func"));
  const auto addSignature = [&](MlirOperation op, std::string_view key) {
    const MlirAttribute dictionaries = capi.mlirOperationGetAttributeByName(op, toStringRef(key));
    for (std::intptr_t i = 0, count = dictionaries ? capi.mlirArrayAttrGetNumElements(dictionaries) : 0; i < count; ++i) {
      const MlirAttribute dictionary = capi.mlirArrayAttrGetElement(dictionaries, i);
      if (!isNew(dictionary.pointer))
        continue;
      for (std::intptr_t entry = 0, size = capi.mlirDictionaryAttrGetNumElements(dictionary); entry < size; ++entry)
        add(capi.mlirDictionaryAttrGetElement(dictionary, entry).name);
    }
  };
  const auto addType = [&](MlirValue value) {
    const MlirType type = capi.mlirValueGetType(value);
    if (isNew(type.pointer))
      found.hasEmptyTensors = found.hasEmptyTensors || hasNoElements(capi, type);
  };
  const auto visit = [&](MlirOperation op) {
    const MlirIdentifier name = capi.mlirOperationGetName(op);
    if (isNew(name.pointer))
      found.operations.emplace_back(toView(capi.mlirIdentifierStr(name)));
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumDiscardableAttributes(op); i < count; ++i)
      add(capi.mlirOperationGetDiscardableAttribute(op, i).name);
    if (name == function) {
      addSignature(op, "arg_attrs");
      addSignature(op, "res_attrs");
    }
    for (std::intptr_t i = 0, count = capi.mlirOperationGetNumResults(op); i < count; ++i)
      addType(capi.mlirOperationGetResult(op, i));
    for (MlirRegion region = capi.mlirOperationGetFirstRegion(op); region;
         region = capi.mlirRegionGetNextInOperation(region)) {
      const MlirBlock first = capi.mlirRegionGetFirstBlock(region);
      found.hasBranches = found.hasBranches || (first && capi.mlirBlockGetNextInRegion(first));
      for (MlirBlock block = first; block; block = capi.mlirBlockGetNextInRegion(block))
        for (std::intptr_t i = 0, count = capi.mlirBlockGetNumArguments(block); i < count; ++i)
          addType(capi.mlirBlockGetArgument(block, i));
    }
  };
  for (const MlirOperation root : roots) {
    visit(root);
    if (!isAlone)
      eachBelow(capi, root, false, visit);
  }
  return found;
}

std::vector<MlirOperation> operationsNamed(const Capi &capi, MlirOperation root, const std::vector<std::string> &names,
                                           bool postOrder) {
  const std::vector<const void *> wanted = identifiers(capi, root, names);
  std::vector<MlirOperation> found;
  eachBelow(capi, root, postOrder, [&](MlirOperation op) {
    if (contains(wanted, capi.mlirOperationGetName(op).pointer))
      found.push_back(op);
  });
  return found;
}

std::vector<MlirOperation> childrenNamed(const Capi &capi, MlirOperation op, const std::string &name) {
  const void *wanted = identifiers(capi, op, {name}).front();
  std::vector<MlirOperation> found;
  eachChild(capi, op, [&](MlirOperation child) {
    if (capi.mlirOperationGetName(child).pointer == wanted)
      found.push_back(child);
  });
  return found;
}

} // namespace mlir_shard
