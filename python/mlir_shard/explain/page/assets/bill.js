// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The communication bill: collectives by cost, or grouped by what they are for.

const GROUPINGS = [
  ["cost", "each"],
  ["module", "by module"],
  ["cause", "by cause"],
  ["op", "by op"],
];

/** A node for a collective, or for one of its causes, which has an equal part of it. */
function billNode(one, cause, parent) {
  const share = cause ? 1 / one.causes.length : 1;
  return {one, cause, parent, children: [], isChoice: true, time: one.time * share, bytes: one.bytes * share};
}

function byCost(nodes) {
  nodes.sort((one, other) => other.time - one.time || other.bytes - one.bytes);
  for (const node of nodes) byCost(node.children);
  return nodes;
}

/** A group of nodes; made when it is first asked for. */
function groupIn(groups, key, label, parent) {
  if (!groups.has(key)) {
    const node = {label, children: [], parent, time: 0, bytes: 0, count: 0, isOpen: false};
    groups.set(key, node);
    if (parent) parent.children.push(node);
  }
  return groups.get(key);
}

function addTo(group, node) {
  group.children.push(node);
  for (let at = group; at; at = at.parent) {
    at.time += node.time;
    at.bytes += node.bytes;
    at.count += 1;
  }
}

function billRoots(grouping) {
  if (grouping === "cost") {
    return byCost(
      collectives.map((one) => {
        const node = billNode(one, null, null);
        if (one.causes.length > 1) node.children = one.causes.map((cause) => billNode(one, cause, node));
        return node;
      }),
    );
  }
  const groups = new Map();
  for (const one of collectives) {
    for (const cause of one.causes) {
      const group = grouping === "module" ? moduleGroup(groups, one, cause) : plainGroup(groups, grouping, cause);
      addTo(group, billNode(one, one.causes.length > 1 ? cause : null, group));
    }
  }
  const roots = [...groups.values()].filter((node) => !node.parent);
  for (const root of roots) root.isOpen = grouping === "module" || roots.length < 3;
  return byCost(roots);
}

function plainGroup(groups, grouping, cause) {
  const key = grouping === "cause" ? cause.kind : cause.op;
  return groupIn(groups, key, key, null);
}

/** The group of the outline that holds the tensor that is moved. */
function moduleGroup(groups, one, cause) {
  const group = cause.tensor >= 0 ? tensors.group[cause.tensor] : one.group;
  const inside = (at) => {
    const around = data.groups.parent[at];
    return groupIn(groups, at, data.groups.label[at], around < 0 ? null : inside(around));
  };
  return inside(group);
}

function makeBill(shown, entered) {
  const most = () => Math.max(...tree.roots.map((node) => node.time), 1e-12);
  const tree = new Tree({
    label: "Collectives",
    kind: "bill",
    head: ["collective", "why", "to a device", "time"],
    cells: (node) => {
      const cost = [
        bytesText(node.bytes),
        [bar(node.time / most()), make("span", {class: "time"}, timeText(node.time))],
      ];
      if (node.label !== undefined) {
        return [make("span", {class: "label"}, node.label), make("span", {class: "quiet"}, countText(node.count, "collective")), ...cost];
      }
      const cause = node.cause || node.one.causes[0];
      const many = node.one.causes.length > 1;
      const kind = node.cause ? `1/${node.one.causes.length} of ${node.one.kind}` : node.one.kind;
      const why = many && !node.cause ? `${node.one.causes.length} causes, ${cause.kind}` : cause.kind;
      return [
        [make("span", {class: "name"}, kind), make("span", {class: "axes"}, axesChips(node.one))],
        [make("span", {class: "why-kind"}, why), opNote(cause.op), placeNote(cause.place)],
        ...cost,
      ];
    },
    text: (node) => {
      if (node.label !== undefined) return node.label.toLowerCase();
      const causes = node.cause ? [node.cause] : node.one.causes;
      return [node.one.kind, ...node.one.axes, ...causes.map((cause) => `${cause.kind} ${cause.text}`)].join(" ").toLowerCase();
    },
    chosen: shown,
    entered,
  });
  const choose = (grouping) => {
    tree.setRoots(billRoots(grouping));
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.grouping === grouping));
  };
  const buttons = GROUPINGS.map(([grouping, label]) =>
    make("button", {type: "button", "data-grouping": grouping, click: () => choose(grouping)}, label),
  );
  choose("cost");
  const tools = make("div", {class: "tools", role: "group", "aria-label": "Group collectives"}, buttons);
  return {tree, tools};
}
