// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The shards of a tensor as a picture: the tensor is cut along two of its dimensions, and each shard has the numbers of
// the devices that hold it. More sharded dimensions make more pictures side by side.

const MOST_CUTS = 8;
const MOST_PICTURES = 4;

/** The devices that hold each shard, by the numbers of the shard in the dimensions that are given. */
function devicesByShard(sharding, dims) {
  const {mesh} = sharding;
  const count = deviceCount(mesh);
  const strides = [];
  let stride = count;
  for (const [, size] of mesh.axes) {
    stride /= size;
    strides.push(stride);
  }
  const held = new Map();
  for (let place = 0; place < count; place += 1) {
    const numbers = dims.map((dim) =>
      sharding.dims[dim].reduce((number, [name, pre, size]) => {
        const at = mesh.axes.findIndex((axis) => axis[0] === name);
        const along = Math.floor(place / strides[at]) % mesh.axes[at][1];
        return number * size + (Math.floor(along / (mesh.axes[at][1] / (pre * size))) % size);
      }, 0),
    );
    const key = numbers.join();
    if (!held.has(key)) held.set(key, []);
    held.get(key).push(mesh.devices.length ? mesh.devices[place] : place);
  }
  return held;
}

/** Numbers in short: `0–3`, `0, 4, … 28`. */
function numbersText(numbers, most) {
  const step = numbers.length > 1 ? numbers[1] - numbers[0] : 1;
  const isEven = numbers.every((number, at) => number === numbers[0] + at * step);
  const last = numbers[numbers.length - 1];
  const all = numbers.join(", ");
  if (all.length <= most && !(isEven && step === 1 && numbers.length > 2)) return all;
  if (isEven && step === 1) return `${numbers[0]}–${last}`;
  const ends = isEven ? `${numbers[0]}, ${numbers[1]}, … ${last}` : `${numbers[0]}, … ${last}`;
  return ends.length <= most ? ends : `${numbers[0]} +${numbers.length - 1}`;
}

/** The numbers of the shards to draw along a dimension; null is where some are left out. */
function cuts(count) {
  const all = [...Array(count).keys()];
  return count <= MOST_CUTS ? all : [...all.slice(0, MOST_CUTS - 2), null, count - 1];
}

/** The pictures of a tensor with what is said below them. */
function shardPicture(tensor) {
  const {sharding} = tensor;
  if (!sharding || !sharding.mesh) return make("p", {class: "quiet"}, "Every device holds all of it.");
  const devices = deviceCount(sharding.mesh);
  const sharded = tensor.shape.map((_, dim) => dim).filter((dim) => shardsAlong(axesOf(tensor, dim)) > 1);
  if (!sharded.length) {
    return make("p", {class: "quiet"}, `Each of the ${countText(devices, "device")} holds all of it.`);
  }
  const shards = product(sharded.map((dim) => shardsAlong(axesOf(tensor, dim))));
  const down = sharded.length > 1 || sharded[0] === 0 ? sharded[0] : null;
  const across = sharded.length > 1 ? sharded[1] : down === null ? sharded[0] : null;
  const others = sharded.slice(2);
  const drawn = [down, across].filter((dim) => dim !== null);
  const held = devicesByShard(sharding, [...others, ...drawn]);
  const pictures = [...new Set([...held.keys()].map((key) => key.split(",").slice(0, others.length).join()))];
  const copies = devices / shards;
  const note =
    `${countText(shards, "shard")} of ${localShape(tensor).join("×")} on ${countText(devices, "device")}` +
    (copies > 1 ? `; ${copies.toLocaleString("en")} devices hold each` : "");
  return make(
    "figure",
    {class: "shards"},
    pictures.slice(0, MOST_PICTURES).map((prefix) => grid(tensor, down, across, held, prefix, others)),
    pictures.length > MOST_PICTURES
      ? make("p", {class: "quiet"}, `and ${countText(pictures.length - MOST_PICTURES, "picture")} more`)
      : null,
    make("figcaption", {}, note),
  );
}

/** One picture: rows along the dimension `down`, columns along `across`, where they are not null. */
function grid(tensor, down, across, held, prefix, others) {
  const rows = down === null ? [0] : cuts(shardsAlong(axesOf(tensor, down)));
  const columns = across === null ? [0] : cuts(shardsAlong(axesOf(tensor, across)));
  const isSmall = others.length > 0;
  const [left, top] = [down === null ? 1 : 26, across === null ? 1 : 26];
  const width = isSmall ? 180 : 360;
  const cell = {width: (width - left - 1) / columns.length, height: rows.length > 4 ? 26 : 34};
  const height = top + rows.length * cell.height + 1;
  const image = makeSvg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img"});
  image.append(makeSvg("title", {}, pictureText(tensor, down, across)));
  if (across !== null) image.append(...edge(tensor, across, columns, (at) => [left + at * cell.width, 0, cell.width, 20]));
  if (down !== null) image.append(...edge(tensor, down, rows, (at) => [0, top + at * cell.height, 20, cell.height]));
  rows.forEach((row, y) =>
    columns.forEach((column, x) => {
      const box = {x: left + x * cell.width, y: top + y * cell.height, width: cell.width, height: cell.height};
      if (row === null || column === null) {
        image.append(label(box, row === null && column === null ? "⋱" : row === null ? "⋮" : "…", "gap"));
        return;
      }
      const numbers = [down === null ? null : row, across === null ? null : column].filter((one) => one !== null);
      const devices = held.get([...(prefix ? [prefix] : []), ...numbers].join()) || [];
      const most = Math.max(Math.floor(cell.width / 6.6) - 1, 2);
      image.append(
        makeSvg(
          "g",
          {class: "shard"},
          makeSvg("title", {}, `shard ${numbers.join(", ")}: device ${devices.slice(0, 200).join(", ")}`),
          makeSvg("rect", box),
          label(box, numbersText(devices, most), "devices"),
        ),
      );
    }),
  );
  const caption = others.map((dim, at) => `dimension ${dim}, shard ${prefix.split(",")[at]}`).join("; ");
  return make("div", {class: "picture"}, caption ? make("div", {class: "quiet"}, caption) : null, image);
}

function label(box, text, kind) {
  return makeSvg("text", {class: kind, x: box.x + box.width / 2, y: box.y + box.height / 2}, text);
}

/** The edge of a picture: a box for each shard of a dimension, in the colors of its axes. */
function edge(tensor, dim, numbers, boxOf) {
  const axes = axesOf(tensor, dim);
  return numbers.map((number, at) => {
    const [x, y, width, height] = boxOf(at);
    if (number === null) return label({x, y, width, height}, "", "gap");
    const each = axes.map(([name], part) => {
      const isDown = width === 20;
      return makeSvg("rect", {
        class: `edge ${axisClass(name)}`,
        x: isDown ? x + (part * width) / axes.length : x + 0.5,
        y: isDown ? y + 0.5 : y + (part * height) / axes.length,
        width: isDown ? width / axes.length : width - 1,
        height: isDown ? height - 1 : height / axes.length,
      });
    });
    return makeSvg("g", {}, each, label({x, y, width, height}, String(number), "number"));
  });
}

function pictureText(tensor, down, across) {
  const parts = [[down, "rows"], [across, "columns"]].filter(([dim]) => dim !== null);
  return parts.map(([dim, what]) => `${what}: dimension ${dim} in ${shardsAlong(axesOf(tensor, dim))} shards`).join("; ");
}
