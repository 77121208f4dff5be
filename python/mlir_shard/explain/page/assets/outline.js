// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The program as an outline: functions, the groups in them and their values, in the order of the program.

/** The nodes of the outline: the roots, and the node of each value. */
function outlineNodes() {
  const groups = data.groups.label.map((label, group) => ({group, label, children: [], parent: null, isOpen: false, cost: 0}));
  const values = [];
  const roots = [];
  const isPlaced = new Set();
  const placed = (group) => {
    const node = groups[group];
    if (isPlaced.has(group)) return node;
    isPlaced.add(group);
    const around = data.groups.parent[group];
    if (around < 0) roots.push(node);
    else {
      node.parent = placed(around);
      node.parent.children.push(node);
    }
    return node;
  };
  for (let row = 0; row < tensorCount; row += 1) {
    const parent = placed(tensors.group[row]);
    const node = {row, children: [], parent, cost: costOf(row)};
    parent.children.push(node);
    values.push(node);
    if (node.cost) for (let at = parent; at; at = at.parent) at.cost += node.cost;
  }
  roots.forEach(join);
  roots.forEach(count);
  return {roots, values, groups};
}

/** Makes groups that only hold one group one with it. */
function join(node) {
  while (node.parent && node.children.length === 1 && node.children[0].children.length) {
    const [child] = node.children;
    node.label += ` › ${child.label}`;
    node.children = child.children;
    for (const one of node.children) one.parent = node;
  }
  node.children.filter((child) => child.children.length).forEach(join);
}

function count(node) {
  if (node.row !== undefined) return 1;
  node.count = node.children.reduce((all, child) => all + count(child), 0);
  return node.count;
}

/** Opens groups from the top as long as there are few rows. */
function openFirst(roots, most) {
  const waiting = [...roots];
  let rows = roots.length;
  let isFirst = true;
  while (waiting.length) {
    const node = waiting.shift();
    if (!isFirst && rows + node.children.length > most) continue;
    isFirst = false;
    node.isOpen = true;
    rows += node.children.length;
    waiting.push(...node.children.filter((child) => child.children.length));
  }
}

function makeOutline(shown, entered) {
  const nodes = outlineNodes();
  const cached = new Map();
  const tree = new Tree({
    label: "Values of the program",
    kind: "outline",
    head: ["value", "type, sharded along", "on a device", "moves"],
    cells: (node) => (node.row === undefined ? groupCells(node) : valueCells(node)),
    text: (node) => {
      if (!cached.has(node)) cached.set(node, searchText(node));
      return cached.get(node);
    },
    chosen: (node) => shown(node),
    entered,
  });
  tree.paint = paintValue();
  openFirst(nodes.roots, 80);
  tree.setRoots(nodes.roots);
  return {tree, ...nodes};
}

function groupCells(node) {
  return [
    make("span", {class: "label"}, node.label),
    make("span", {class: "quiet"}, countText(node.count, "value")),
    "",
    node.cost ? make("span", {class: "cost"}, timeText(node.cost)) : "",
  ];
}

/** What a tensor is called in its group: of an argument the part that no group is named by. */
function nameInGroup(tensor) {
  const part = tensor.op === "argument" && !tensor.name.startsWith("%") && /(\[[^\]]*\]|[^.[\]]+)$/.exec(tensor.name);
  return part ? part[0] : shortName(tensor);
}

function valueCells(node) {
  const tensor = tensorOf(node.row);
  const op = tensor.op === "argument" || tensor.op === "result" ? "" : tensor.op;
  const marks = [
    data.lost[node.row] ? make("span", {class: "mark lost", title: "lost an axis"}, "lost") : null,
    node.cost ? make("span", {class: "cost"}, timeText(node.cost)) : null,
  ];
  return [
    [make("span", {class: "name", title: tensor.name}, nameInGroup(tensor)), op && shortOp(op) !== shortName(tensor) ? opNote(op) : null],
    shapeChips(tensor),
    bytesText(localBytes(tensor)),
    marks,
  ];
}

function searchText(node) {
  if (node.row === undefined) return node.label.toLowerCase();
  const tensor = tensorOf(node.row);
  const place = placeOf(tensor.place);
  const parts = [tensor.name, tensor.op, place.name, `${place.file}:${place.line}:${place.column}`];
  return [...parts, tensor.shape.join("x"), tensor.element, tensor.sharding ? tensor.sharding.text : ""].join(" ").toLowerCase();
}

/** The colors of values on the map: of their axes, or one for what is not sharded. */
function paintValue() {
  const style = getComputedStyle(document.documentElement);
  const colorOf = (name) => style.getPropertyValue(`--${name}`).trim();
  const known = new Map();
  return (node) => {
    if (node.row === undefined) return [colorOf("line")];
    const key = tensors.sharding[node.row];
    if (!known.has(key)) {
      const axes = key < 0 ? [] : shardingOf(key).dims.flat().map((axis) => axisClass(axis[0]));
      known.set(key, axes.length ? [...new Set(axes)].map((name) => colorOf(`${name}-strong`)) : [colorOf("none-strong")]);
    }
    return known.get(key);
  };
}
