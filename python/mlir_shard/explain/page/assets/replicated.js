// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Tensors that devices hold in several copies, and what would shard them. Equal ones are together.

/** The axes of its mesh that a tensor is not sharded on, each with the first dimension that it divides, or -1. */
function freeAxes(tensor) {
  const mesh = (tensor.sharding && tensor.sharding.mesh) || data.meshes[0];
  if (!mesh) return [];
  const used = new Set(tensor.shape.flatMap((_, dim) => axesOf(tensor, dim).map((axis) => axis[0])));
  const local = localShape(tensor);
  return mesh.axes
    .filter(([name, size]) => !used.has(name) && size > 1)
    .map(([name, size]) => ({name, size, dim: local.findIndex((length) => length >= size && length % size === 0)}));
}

/** The largest free axis that divides a dimension of a tensor. */
function bestAxis(tensor) {
  return freeAxes(tensor).filter((one) => one.dim >= 0).sort((one, other) => other.size - one.size)[0];
}

/** The annotation that would shard a tensor on its best axis; empty if there is none. */
function suggestion(tensor) {
  const axis = bestAxis(tensor);
  if (!axis) return "";
  const dims = tensor.shape.map((_, dim) => {
    const names = axesOf(tensor, dim).map(([name]) => `"${name}"`);
    if (dim === axis.dim) names.push(`"${axis.name}"`);
    return `{${names.join(", ")}}`;
  });
  return `[${dims.join(", ")}]`;
}

function suggestionNote(tensor) {
  const found = suggestion(tensor);
  return found ? make("p", {class: "remedy"}, make("b", {}, "To shard it: "), "annotate it ", make("code", {}, found)) : null;
}

function remedyText(row) {
  const [lost] = lostBy(row);
  if (lost) return `${lost.axis.replaceAll('"', "")} lost, ${lost.reason}: ${lost.remedy}`;
  const found = suggestion(tensorOf(row));
  return found ? `annotate it ${found}` : "no free axis divides a dimension";
}

/** The bytes of a device that sharding a tensor on its best axis would save. */
function savedBytes(tensor) {
  const axis = bestAxis(tensor);
  return axis ? localBytes(tensor) * (1 - 1 / axis.size) : 0;
}

function replicatedRoots(isWhole) {
  const groups = new Map();
  for (let row = 0; row < tensorCount; row += 1) {
    const sharding = tensors.sharding[row];
    const isSharded = sharding >= 0 && data.shardings[sharding][1].some((axes) => axes.length);
    if (isWhole && isSharded) continue;
    const key = [tensors.type[row], tensors.op[row], sharding].join();
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  const roots = [];
  for (const rows of groups.values()) {
    const saved = savedBytes(tensorOf(rows[0]));
    if (saved < 1) continue;
    const leaf = (row, parent) => ({row, saved, parent, children: [], isChoice: true});
    if (rows.length === 1) roots.push(leaf(rows[0], null));
    else {
      const node = {rows, saved: saved * rows.length, parent: null, children: [], isOpen: false};
      node.children = rows.map((row) => leaf(row, node));
      roots.push(node);
    }
  }
  return roots.sort((one, other) => other.saved / (other.rows || [0]).length - one.saved / (one.rows || [0]).length);
}

function makeReplicated(shown, entered) {
  const tree = new Tree({
    label: "Replicated values",
    kind: "replicated",
    head: ["value", "type", "could save", "what would shard it"],
    cells: (node) => {
      const row = node.rows ? node.rows[0] : node.row;
      const tensor = tensorOf(row);
      const name = node.rows ? `${node.rows.length} × ${shortOp(tensor.op)}` : shortName(tensor);
      const op = node.rows || shortOp(tensor.op) === shortName(tensor) ? null : opNote(tensor.op);
      const each = node.rows ? node.saved / node.rows.length : node.saved;
      const saved = `${bytesText(each)}${node.rows ? " each" : ""}`;
      const remedy = remedyText(row);
      return [
        [make("span", {class: node.rows ? "label" : "name", title: tensor.op}, name), op],
        shapeChips(tensor),
        saved,
        make("span", {class: "quiet", title: remedy}, remedy),
      ];
    },
    text: (node) => {
      const tensor = tensorOf(node.rows ? node.rows[0] : node.row);
      return `${node.rows ? "" : tensor.name} ${tensor.op} ${tensor.shape.join("x")} ${remedyText(tensor.row)}`.toLowerCase();
    },
    chosen: shown,
    entered,
  });
  const choose = (isWhole) => {
    tree.setRoots(replicatedRoots(isWhole));
    buttons.forEach((button, at) => button.setAttribute("aria-pressed", String((at === 0) === isWhole)));
  };
  const buttons = [
    make("button", {type: "button", click: () => choose(true)}, "without any axis"),
    make("button", {type: "button", click: () => choose(false)}, "with axes to spare"),
  ];
  choose(true);
  const tools = make("div", {class: "tools", role: "group", "aria-label": "Which values"}, buttons);
  return {tree, tools};
}
