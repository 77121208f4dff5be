// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Elements of the page. Texts of the program become text nodes only.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes; functions among them listen to events, and children that are null are left out. */
function make(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function makeSvg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const axisClass = (name) => `a${axisColors.has(name) ? axisColors.get(name) : "none"}`;
const axisText = ([name, pre, size], mesh) => {
  const whole = mesh && mesh.axes.find((axis) => axis[0] === name);
  return whole && whole[1] === size ? name : `${name}:(${pre})${size}`;
};

/** The name of an axis on its color. */
function axisChip(text) {
  const name = text.startsWith('"') ? text.slice(1, text.lastIndexOf('"')) : text.replace(/=\d+$/, "");
  return make("span", {class: `axis ${axisClass(name)}`}, text.startsWith('"') ? text.replaceAll('"', "") : text);
}

/** The shape of a tensor, each dimension on the colors of its axes. */
function shapeChips(tensor) {
  const mesh = tensor.sharding && tensor.sharding.mesh;
  const dims = tensor.shape.map((size, dim) => {
    const axes = axesOf(tensor, dim);
    const names = axes.map((axis) => axisText(axis, mesh)).join(" ");
    const chip = make("span", {class: "dim"}, String(size), axes.length ? make("small", {}, names) : null);
    if (axes.length === 1) chip.classList.add("axis", axisClass(axes[0][0]));
    if (axes.length > 1) {
      chip.classList.add("axis");
      const colors = axes.map((axis) => `var(--${axisClass(axis[0])})`);
      const stops = colors.map((color, at) => `${color} ${(at * 100) / axes.length}% ${((at + 1) * 100) / axes.length}%`);
      chip.style.backgroundImage = `linear-gradient(90deg, ${stops.join(", ")})`;
    }
    return chip;
  });
  return make("span", {class: "shape", "aria-label": shapeText(tensor)}, dims, make("span", {class: "element"}, tensor.element));
}

function shapeText(tensor) {
  const mesh = tensor.sharding && tensor.sharding.mesh;
  const dims = tensor.shape.map((size, dim) => {
    const axes = axesOf(tensor, dim);
    return axes.length ? `${size} on ${axes.map((axis) => axisText(axis, mesh)).join(" and ")}` : String(size);
  });
  return `${dims.join(" by ")} ${tensor.element}`;
}

/** A link to a value, which shows it. */
function valueLink(row) {
  if (row < 0) return make("span", {class: "quiet"}, "a scalar");
  const tensor = tensorOf(row);
  return make("a", {href: `#v${row}`, class: "value", title: `${tensor.name}\n${fullPlace(tensor.place)}`}, shortName(tensor));
}

function collectiveLink(one) {
  return make("a", {href: `#c${one.row}`, class: "value"}, one.kind);
}

function placeNote(row) {
  const text = placeText(row);
  return text ? make("span", {class: "place", title: fullPlace(row)}, text) : null;
}

/** The name of an op, all of it where the pointer rests. */
function opNote(op) {
  return make("span", {class: "op", title: op}, shortOp(op));
}

/** A place in the words of the compiler, without the calls around it, which are there where the pointer rests. */
function placeWords(text) {
  return make("span", {class: "place", title: text}, text.split(", called from ")[0]);
}

/** A share of a whole as a bar. */
function bar(share) {
  const inside = make("span", {});
  inside.style.width = `${Math.max(share * 100, share > 0 ? 1 : 0)}%`;
  return make("span", {class: "bar", "aria-hidden": "true"}, inside);
}
