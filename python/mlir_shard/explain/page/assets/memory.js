// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Memory over the program: what is live at each operation of the local program.

// Of the drawing, which is stretched to the width that there is.
const CURVE = {width: 800, height: 240};
const LAYERS = [
  ["arguments", "arguments"],
  ["values", "values and results"],
  ["collectives", "received by collectives"],
];

/** The heights of the layers at a point, each on top of those before. */
function layersAt(memory, at) {
  const base = memory.arguments + memory.constants;
  const values = base + memory.points.values[at];
  return [base, values, values + memory.points.collectives[at]];
}

function makeMemory(shown) {
  const {memory} = data;
  const count = memory.points.values.length;
  const totals = memory.points.values.map((_, at) => layersAt(memory, at)[2]);
  const peak = totals.reduce((most, total, at) => (total > totals[most] ? at : most), 0);
  const most = Math.max(memory.peak, totals[peak] || 0, 1);
  const {width, height} = CURVE;
  const x = (at) => (at / Math.max(count, 1)) * width;
  const y = (bytes) => (1 - bytes / most) * height;

  const areas = LAYERS.map(([name], layer) => {
    const line = [];
    for (let at = 0; at < count; at += 1) {
      const level = y(layersAt(memory, at)[layer]);
      line.push(`${x(at).toFixed(1)},${level.toFixed(1)}`, `${x(at + 1).toFixed(1)},${level.toFixed(1)}`);
    }
    const ends = `${x(count)},${y(0)} ${x(0)},${y(0)}`;
    return makeSvg("polygon", {class: `layer ${name}`, points: `${line.join(" ")} ${ends}`});
  });
  const ticks = [0, 0.5, 1].map((share) => makeSvg("line", {class: "tick", x1: 0, x2: width, y1: y(most * share), y2: y(most * share)}));
  const labels = [1, 0.5, 0].map((share) => make("span", {}, bytesText(most * share)));
  const cursor = makeSvg("line", {class: "cursor", y1: 0, y2: height});
  const image = makeSvg(
    "svg",
    {viewBox: `0 0 ${width} ${height}`, class: "curve", preserveAspectRatio: "none", "aria-hidden": "true"},
    ticks,
    areas.reverse(),
    cursor,
  );
  const note = make("div", {class: "at", "aria-live": "polite"});
  const slider = make("input", {
    type: "range",
    min: 0,
    max: Math.max(count - 1, 0),
    "aria-label": "Operation of the local program",
    input: () => select(Number(slider.value)),
    keydown: (event) => event.key === "Enter" && memory.points.tensor[slider.value] >= 0 && shown(memory.points.tensor[slider.value]),
  });
  const select = (at) => {
    slider.value = at;
    cursor.setAttribute("x1", x(at + 0.5));
    cursor.setAttribute("x2", x(at + 0.5));
    const op = texts[memory.points.op[at]];
    const tensor = memory.points.tensor[at];
    const live = `${bytesText(totals[at])} live at operation ${at + 1} of ${count}: `;
    note.replaceChildren(live, make("code", {}, op), " ", placeNote(memory.points.place[at]) || "", " ", tensor >= 0 ? valueLink(tensor) : "");
    slider.setAttribute("aria-valuetext", `${live}${op}`);
  };
  const point = (event) => {
    const box = image.getBoundingClientRect();
    const along = (event.clientX - box.left) / box.width;
    select(Math.min(Math.max(Math.floor(along * count), 0), count - 1));
  };
  image.addEventListener("pointermove", (event) => (event.buttons || event.pointerType === "mouse") && point(event));
  image.addEventListener("click", (event) => {
    point(event);
    if (memory.points.tensor[slider.value] >= 0) shown(memory.points.tensor[slider.value]);
  });
  if (count) select(peak);
  const legend = make("div", {class: "legend"}, LAYERS.map(([name, text]) => make("span", {class: `layer ${name}`}, text)));
  const largest = memory.live.map(([bytes, kind, name, place]) => [bytesText(bytes), make("span", {}, `${texts[kind]} `, make("code", {}, texts[name]), " ", placeWords(texts[place]))]);
  return make(
    "div",
    {class: "memory"},
    make("p", {}, make("b", {}, bytesText(memory.peak)), " at the peak of a rank, at ", placeWords(texts[memory.at] || "the beginning"), `; arguments ${bytesText(memory.arguments)}, constants ${bytesText(memory.constants)}.`),
    legend,
    make("div", {class: "plot"}, make("div", {class: "ticks", "aria-hidden": "true"}, labels), image, count ? slider : null),
    note,
    make("h3", {}, "Largest at the peak"),
    factList(largest),
  );
}
