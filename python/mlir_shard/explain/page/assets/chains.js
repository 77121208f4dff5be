// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The chains of axes, and the axes that were lost.

// The steps of a longer chain that are shown at first: from the annotation, and before the value.
const FIRST_STEPS = 3;
const LAST_STEPS = 5;

function chainsPart(tensor) {
  const origins = originsOf(tensor.row);
  if (!origins.length) return null;
  return make("section", {}, make("h3", {}, "Why it is sharded"), origins.map((one) => chainElement(tensor.row, one)));
}

function chainElement(row, {dim, axis, origin}) {
  const {annotation, steps} = chainOf(row, origin);
  const list = make("ol", {class: "chain"}, make("li", {class: "origin"}, annotationElement(annotation, steps.length)));
  const hidden = steps.length - FIRST_STEPS - LAST_STEPS;
  if (hidden > 1) {
    list.append(...steps.slice(0, FIRST_STEPS).map(stepElement));
    const rest = steps.slice(FIRST_STEPS, FIRST_STEPS + hidden);
    const item = make("li", {class: "more"});
    const open = () => {
      const made = rest.map(stepElement);
      item.replaceWith(...made);
      (made[0].querySelector("a") || list).focus();
    };
    item.append(make("button", {type: "button", click: open}, `${countText(hidden, "step")} more`));
    list.append(item, ...steps.slice(-LAST_STEPS).map(stepElement));
  } else list.append(...steps.map(stepElement));
  return make("div", {class: "why"}, make("h4", {}, `dimension ${dim} on `, axisChip(axis)), list);
}

function annotationElement(annotation, stepCount) {
  return [
    make("span", {class: "from"}, annotation.text),
    annotation.text.endsWith(placeText(annotation.place)) ? null : placeNote(annotation.place),
    annotation.sharding ? make("code", {}, annotation.sharding) : null,
    annotation.priority ? make("span", {class: "quiet"}, `priority ${annotation.priority}`) : null,
    stepCount && annotation.tensor >= 0 ? make("span", {class: "to"}, valueLink(annotation.tensor)) : null,
  ];
}

function stepElement(step) {
  const roles = `${step.sourceRole} → ${step.targetRole}`;
  return make(
    "li",
    {title: `from ${step.sourceRole} to ${step.targetRole}, dimension ${step.dim}`},
    make("span", {class: "through", title: step.op}, shortOp(step.op), step.factor ? [" along ", make("b", {}, step.factor)] : null),
    make("span", {class: "quiet roles"}, roles),
    placeNote(step.place),
    make("span", {class: "to"}, valueLink(step.target)),
  );
}

function lostPart(tensor) {
  const lost = lostBy(tensor.row);
  if (!lost.length) return null;
  const items = lost.map((one) =>
    make(
      "li",
      {},
      make("div", {}, `dimension ${one.dim} could be on `, axisChip(one.axis), make("span", {class: "mark lost"}, one.reason)),
      make("div", {}, valueLink(one.source), ` has it along factor ${one.factor} of ${one.op} `, placeNote(one.place), `; ${one.why}.`),
      make("div", {class: "remedy"}, make("b", {}, "To change it: "), one.remedy),
    ),
  );
  return make("section", {}, make("h3", {}, "Axes it lost"), make("ul", {class: "lost"}, items));
}
