// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The program, read from the tables that `page/data.py` writes.

const data = JSON.parse(document.getElementById("data").textContent);
const texts = data.texts;
const tensors = data.tensors;
const tensorCount = tensors.name.length;

/** A place in the user's program; `around` is the row of where it was called. */
function placeOf(row) {
  const {file, line, column, name, around} = data.places;
  return {file: texts[file[row]], line: line[row], column: column[row], name: texts[name[row]], around: around[row]};
}

/** The file without its folders, the line and the column; else the name. */
function placeText(row) {
  const place = placeOf(row);
  return place.file ? `${place.file.split("/").pop()}:${place.line}:${place.column}` : place.name;
}

/** All of a place, with the calls around it on lines of their own. */
function fullPlace(row) {
  const lines = [];
  for (let at = row; at >= 0; at = data.places.around[at]) {
    const place = placeOf(at);
    const position = place.file ? `${place.file}:${place.line}:${place.column}` : "";
    lines.push((lines.length ? "called from " : "") + ([position, place.name].filter(Boolean).join(" ") || "unknown"));
  }
  return lines.join("\n");
}

/** A tensor by its row. */
function tensorOf(row) {
  const [shape, element, bytes] = data.types[tensors.type[row]];
  const sharding = tensors.sharding[row] < 0 ? null : shardingOf(tensors.sharding[row]);
  return {
    row,
    name: texts[tensors.name[row]],
    op: texts[tensors.op[row]],
    index: tensors.index[row],
    place: tensors.place[row],
    group: tensors.group[row],
    shape,
    element,
    bytes,
    sharding,
  };
}

/** What a tensor is called in a narrow space: of a path of scopes the last. */
function shortName(tensor) {
  if (tensor.name.startsWith("%")) return tensor.name;
  const parts = tensor.name.split("/");
  return parts[parts.length - 1] || tensor.name;
}

/** The name of an op in a narrow space, without its dialect. */
const shortOp = (op) => op.slice(op.indexOf(".") + 1);

/** A sharding: for each dimension its axes as [name, product of the sizes to the left, size]. */
function shardingOf(row) {
  const [mesh, dims, unreduced, text] = data.shardings[row];
  return {mesh: mesh < 0 ? null : data.meshes[mesh], dims, unreduced, text: texts[text]};
}

const product = (sizes) => sizes.reduce((all, size) => all * size, 1);
const shardsAlong = (axes) => product(axes.map((axis) => axis[2]));
const deviceCount = (mesh) => product(mesh.axes.map((axis) => axis[1]));

/** The axes of a dimension of a tensor. */
function axesOf(tensor, dim) {
  return (tensor.sharding && tensor.sharding.dims[dim]) || [];
}

/** The shape of a shard; shards of a dimension that does not divide are rounded up. */
function localShape(tensor) {
  return tensor.shape.map((size, dim) => Math.ceil(size / shardsAlong(axesOf(tensor, dim))));
}

/** The bytes of a tensor on a device. */
function localBytes(tensor) {
  const elements = product(tensor.shape);
  return elements ? Math.ceil((tensor.bytes / elements) * product(localShape(tensor))) : 0;
}

/** The ends of the chains of a tensor: dimension, axis, and a step, or below zero an annotation. */
function originsOf(row) {
  const flat = data.origins[row];
  const found = [];
  for (let at = 0; at < flat.length; at += 3) {
    found.push({dim: flat[at], axis: texts[flat[at + 1]], origin: flat[at + 2]});
  }
  return found;
}

/** The annotation that a chain begins at, and its steps from there to the tensor. */
function chainOf(row, origin) {
  const steps = [];
  let target = row;
  while (origin >= 0) {
    const [op, factor, sourceRole, targetRole, dim] = data.links[data.steps.link[origin]];
    const source = data.steps.source[origin];
    steps.push({
      op: texts[op],
      factor: texts[factor],
      sourceRole: texts[sourceRole],
      targetRole: texts[targetRole],
      dim,
      place: data.steps.place[origin],
      source,
      target,
    });
    target = source;
    origin = data.steps.before[origin];
  }
  const [kind, text, place, sharding, priority] = data.annotations[-1 - origin];
  const annotation = {kind: texts[kind], text: texts[text], place, sharding: texts[sharding], priority, tensor: target};
  return {annotation, steps: steps.reverse()};
}

/** The axes that a tensor lost. */
function lostBy(row) {
  return (data.lost[row] || []).map(([dim, axis, reason, why, remedy, op, factor, place, source]) => ({
    dim,
    axis: texts[axis],
    reason: texts[reason],
    why: texts[why],
    remedy: texts[remedy],
    op: texts[op],
    factor: texts[factor],
    place,
    source,
  }));
}

function causeOf(row) {
  const [kind, text, op, axes, alternative, place, tensor] = data.causes[row];
  return {
    kind: texts[kind],
    text: texts[text],
    op: texts[op],
    axes: texts[axes],
    alternative: texts[alternative],
    place,
    tensor,
  };
}

const collectives = data.collectives.map(
  ([kind, axes, groups, bytes, total, time, op, place, loops, group, causes], row) => ({
    row,
    kind: texts[kind],
    axes: axes.map((axis) => texts[axis]),
    groups,
    bytes,
    total,
    time,
    op: texts[op],
    place: texts[place],
    loops,
    group,
    causes: causes.map(causeOf),
  }),
);

/** The collectives that move a tensor, or that its definition needs, by its row. */
const collectivesOf = new Map();
for (const one of collectives) {
  for (const cause of one.causes) {
    if (cause.tensor < 0) continue;
    const known = collectivesOf.get(cause.tensor) || [];
    if (!known.includes(one)) known.push(one);
    collectivesOf.set(cause.tensor, known);
  }
}

/** The seconds of collectives that a tensor is the reason for; one with many causes counts in equal parts. */
function costOf(row) {
  let cost = 0;
  for (const one of collectivesOf.get(row) || []) {
    cost += (one.time * one.causes.filter((cause) => cause.tensor === row).length) / one.causes.length;
  }
  return cost;
}

/** Axes by name, in the order of the meshes: each has a color. */
const axisColors = new Map();
for (const mesh of data.meshes) {
  for (const [name] of mesh.axes) if (!axisColors.has(name)) axisColors.set(name, axisColors.size % 8);
}

const TIMES = [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]];
const SIZES = ["B", "kB", "MB", "GB", "TB", "PB"];

const threeDigits = (number) => (number >= 100 ? Math.round(number).toString() : Number(number.toPrecision(3)).toString());

function timeText(seconds) {
  if (!seconds) return "0 s";
  const [unit, scale] = TIMES.find(([, scale]) => seconds >= scale) || TIMES[TIMES.length - 1];
  return `${threeDigits(seconds / scale)} ${unit}`;
}

function bytesText(bytes) {
  let unit = 0;
  while (bytes >= 999.5 && unit < SIZES.length - 1) {
    bytes /= 1000;
    unit += 1;
  }
  return `${threeDigits(bytes)} ${SIZES[unit]}`;
}

const countText = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
