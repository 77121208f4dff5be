// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What is shown of the value or the collective that is selected.

function valueDetails(row) {
  const tensor = tensorOf(row);
  const local = localShape(tensor);
  const facts = [
    ["type", `tensor<${[...tensor.shape, tensor.element].join("x")}>, ${bytesText(tensor.bytes)}`],
    ["on a device", `${[...local, tensor.element].join("x")}, ${bytesText(localBytes(tensor))}`],
    ["sharding", make("code", {}, tensor.sharding ? tensor.sharding.text : "none")],
    tensor.sharding && tensor.sharding.unreduced.length
      ? ["partial sums", tensor.sharding.unreduced.map((axis) => axisChip(axis[0]))]
      : null,
    ["place", make("span", {class: "lines"}, fullPlace(tensor.place))],
  ];
  const what = tensor.op === "argument" || tensor.op === "result" ? `${tensor.op} ${tensor.index}` : tensor.op;
  return [
    make("h2", {}, shortName(tensor), " ", what === shortName(tensor) ? null : make("small", {}, what)),
    make("div", {class: "big"}, shapeChips(tensor)),
    shardPicture(tensor),
    chainsPart(tensor) || notShardedPart(tensor),
    lostPart(tensor),
    movesPart(row),
    make("section", {}, make("h3", {}, "Facts"), factList(facts)),
  ];
}

function factList(facts) {
  const pairs = facts.filter(Boolean).map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
  return make("dl", {}, pairs);
}

function notShardedPart(tensor) {
  if (data.lost[tensor.row]) return null;
  const why = "None of its neighbors is sharded along a dimension of it that is free, so no axis came to it.";
  return make("section", {}, make("h3", {}, "Why it is not sharded"), make("p", {}, why), suggestionNote(tensor));
}

function movesPart(row) {
  const moving = collectivesOf.get(row) || [];
  if (!moving.length) return null;
  const items = moving.map((one) => {
    const causes = one.causes.filter((cause) => cause.tensor === row);
    return make("li", {}, collectiveLine(one), causes.map(causeElement));
  });
  return make("section", {}, make("h3", {}, "What moves it"), make("ul", {class: "moves"}, items));
}

function collectiveLine(one) {
  const cost = `${bytesText(one.bytes)} to a device, ${timeText(one.time)}`;
  const share = one.causes.length > 1 ? `, for ${one.causes.length} tensors together` : "";
  return make("div", {}, collectiveLink(one), " on ", axesChips(one), ` ${cost}${share}`);
}

const axesChips = (one) => (one.axes.length ? one.axes.map(axisChip) : "no axes");

function causeElement(cause) {
  return make(
    "div",
    {class: "cause"},
    make("span", {class: "mark"}, cause.kind),
    ` ${cause.text}.`,
    cause.alternative ? make("div", {class: "remedy"}, make("b", {}, "Instead: "), cause.alternative) : null,
  );
}

function collectiveDetails(row) {
  const one = collectives[row];
  const facts = [
    ["a device receives", bytesText(one.bytes)],
    ["all receive", bytesText(one.total)],
    ["time", `${timeText(one.time)}, predicted`],
    ["groups", `${countText(one.groups, "group")} of devices`],
    one.loops ? ["loops around", String(one.loops)] : null,
    ["serves", `${one.op}${one.place ? ` at ${one.place}` : ""}`],
  ];
  const causes = one.causes.map((cause) =>
    make("li", {}, cause.tensor >= 0 ? make("div", {}, "moves ", valueLink(cause.tensor)) : null, causeElement(cause)),
  );
  const heading = one.causes.length > 1 ? `Why, ${one.causes.length} causes` : "Why";
  return [
    make("h2", {}, one.kind, " ", make("small", {}, "collective")),
    make("div", {class: "big"}, "on ", axesChips(one)),
    factList(facts),
    make("section", {}, make("h3", {}, heading), make("ul", {class: "moves"}, causes)),
  ];
}

function groupDetails(node) {
  const sums = {all: 0, local: 0, whole: 0, values: 0};
  const visit = (one) => {
    if (one.row === undefined) return one.children.forEach(visit);
    const tensor = tensorOf(one.row);
    sums.values += 1;
    sums.all += tensor.bytes;
    sums.local += localBytes(tensor);
    sums.whole += tensor.bytes === localBytes(tensor);
    return undefined;
  };
  visit(node);
  const facts = [
    ["values", `${sums.values.toLocaleString("en")}, of which ${sums.whole.toLocaleString("en")} are not sharded`],
    ["bytes", `${bytesText(sums.all)} if each value were kept; ${bytesText(sums.local)} on a device`],
    ["collectives", timeText(node.cost)],
  ];
  return [make("h2", {}, node.label, " ", make("small", {}, "group")), factList(facts)];
}

/** Single annotations that save bytes, each tried by partitioning the program with it. */
function suggestionsPart() {
  const head = make("h3", {}, "Annotations that save bytes");
  if (!data.suggestions.length) {
    return make("section", {}, head, make("p", {}, make("code", {}, "--suggest 10"), " tries annotations, and shows here those that save the most."));
  }
  const items = data.suggestions.map(([row, sharding, saved, before, time]) => {
    const share = `${Number(((100 * saved) / before).toPrecision(2))} %`;
    const faster = time > 0 ? `, ${timeText(time)} less` : time < 0 ? `, ${timeText(-time)} more` : "";
    return make("li", {}, valueLink(row), " ", make("code", {}, texts[sharding]), ` saves a device ${bytesText(saved)} (${share})${faster}`);
  });
  return make("section", {}, head, make("ol", {class: "suggestions"}, items));
}

function startDetails() {
  const keys = [
    ["↑ ↓", "move through the values"],
    ["→ ←", "open and close a group"],
    ["Enter", "go to the details; Esc goes back"],
    ["/", "search names, ops, lines, shapes and shardings"],
    [data.memory ? "1 2 3 4" : "1 2 3", "the views"],
  ];
  return [
    make("h2", {}, "Select a value"),
    make("p", {}, "A value shows its shards on the devices, where each of its axes is from, and what moves it."),
    factList(keys.map(([key, what]) => [make("kbd", {}, key), what])),
    suggestionsPart(),
  ];
}
