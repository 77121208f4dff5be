// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The page: its views side by side with the details of what is selected.

function header() {
  const {totals} = data;
  const meshes = data.meshes.map((mesh) =>
    make(
      "span",
      {class: "mesh"},
      mesh.axes.length ? mesh.axes.map(([name, size]) => make("span", {class: `axis ${axisClass(name)}`}, `${name} ${size}`)) : mesh.name,
      make("span", {class: "quiet"}, countText(deviceCount(mesh), "device")),
    ),
  );
  const facts = [
    countText(tensorCount, "value"),
    countText(totals.collectives, "collective"),
    `${bytesText(totals.bytes_received)} to a device`,
    timeText(totals.time),
    data.memory ? `${bytesText(data.memory.peak)} memory` : null,
  ];
  return make(
    "header",
    {},
    make("h1", {title: data.title}, data.title),
    make("div", {class: "legend", "aria-label": "Meshes; the colors of their axes"}, meshes),
    make("div", {class: "totals"}, facts.filter(Boolean).map((fact) => make("span", {}, fact))),
  );
}

function start() {
  const details = make("aside", {id: "details", tabindex: "-1", "aria-label": "Details"});
  const outline = makeOutline((node) => (node.row === undefined ? showDetails(groupDetails(node)) : go(`v${node.row}`)), enter);
  const bill = makeBill((node) => node.one && go(node.cause && node.cause.tensor >= 0 ? `v${node.cause.tensor}` : `c${node.one.row}`), enter);
  const replicated = makeReplicated((node) => go(`v${node.rows ? node.rows[0] : node.row}`), enter);
  const views = [
    {name: "Program", tree: outline.tree, parts: [outline.tree.element]},
    {name: "Communication", tree: bill.tree, parts: [bill.tools, bill.tree.element]},
    {name: "Replicated", tree: replicated.tree, parts: [replicated.tools, replicated.tree.element]},
  ];
  if (data.memory) views.push({name: "Memory", tree: null, parts: [makeMemory((row) => go(`v${row}`))]});

  const found = make("span", {class: "found", role: "status"});
  const search = make("input", {type: "search", placeholder: "Search  ( / )", "aria-label": "Search", spellcheck: "false"});
  const panels = views.map((view, at) =>
    make("div", {class: "panel", role: "tabpanel", id: `panel-${at}`, "aria-labelledby": `tab-${at}`, hidden: "hidden"}, view.parts),
  );
  const tabs = views.map((view, at) =>
    make("button", {type: "button", role: "tab", id: `tab-${at}`, "aria-controls": `panel-${at}`, click: () => choose(at)}, view.name),
  );
  const list = make("div", {role: "tablist", "aria-label": "Views", keydown: alongTabs}, tabs);
  let current = 0;

  function choose(at) {
    current = at;
    tabs.forEach((tab, one) => {
      tab.setAttribute("aria-selected", String(one === at));
      tab.tabIndex = one === at ? 0 : -1;
      panels[one].hidden = one !== at;
    });
    find();
    if (views[at].tree) views[at].tree.draw(true);
  }

  function alongTabs(event) {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step) return;
    choose((current + step + views.length) % views.length);
    tabs[current].focus();
    event.preventDefault();
  }

  function find() {
    const {tree} = views[current];
    search.disabled = !tree;
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const count = tree ? tree.search(words) : 0;
    found.textContent = words.length && tree ? (count ? `${count.toLocaleString("en")} found` : "none found") : "";
  }

  /** The row of what is called exactly as is searched, or else the first that is no group. */
  function bestMatch(tree) {
    const name = search.value.trim();
    const exact = tree.rows.findIndex(({node}) => node.row !== undefined && texts[tensors.name[node.row]] === name);
    return Math.max(exact >= 0 ? exact : tree.rows.findIndex((row) => !row.node.children.length), 0);
  }

  // What is selected is in the address. Links add to the browser's history, moves in a list do not. In the frame of a
  // notebook a page has no address of its own.

  const hasAddress = location.protocol !== "about:";
  let selected = location.hash.slice(1);

  function go(target) {
    selected = target;
    if (hasAddress) history.replaceState(null, "", `#${target}`);
    show();
  }

  function show() {
    const [, kind, number] = /^([vc])(\d+)$/.exec(selected) || [];
    const row = Number(number);
    if (kind === "v" && row < tensorCount) {
      showDetails(valueDetails(row));
      const {tree} = outline;
      const node = outline.values[row];
      if (tree.active < 0 || tree.rows[tree.active].node !== node) tree.reveal(node, true);
    } else if (kind === "c" && row < collectives.length) showDetails(collectiveDetails(row));
    else showDetails(startDetails());
  }

  function showDetails(parts) {
    const back = make("button", {type: "button", class: "back", click: leave}, "← Back to the list");
    details.replaceChildren(...make("div", {}, back, parts).childNodes);
    details.scrollTop = 0;
  }

  function enter() {
    document.body.classList.add("selected");
    details.focus();
  }

  function leave() {
    document.body.classList.remove("selected");
    focusView();
  }

  function focusView() {
    const {tree} = views[current];
    (tree ? tree.body : panels[current].querySelector("input") || tabs[current]).focus();
  }

  search.addEventListener("input", find);
  search.addEventListener("keydown", (event) => {
    const {tree} = views[current];
    if (event.key === "Escape") {
      search.value = "";
      find();
      if (selected) show();
      focusView();
    } else if ((event.key === "Enter" || event.key === "ArrowDown") && tree.rows.length) {
      tree.body.focus();
      tree.setActive(bestMatch(tree));
    } else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(search|text)$/.test(event.target.type || "")) return;
    if (event.key === "/") search.focus();
    else if (event.key === "Escape") leave();
    else if (Number(event.key) >= 1 && Number(event.key) <= views.length) {
      choose(Number(event.key) - 1);
      focusView();
    } else return;
    event.preventDefault();
  });
  window.addEventListener("hashchange", () => {
    selected = location.hash.slice(1);
    show();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (!link || hasAddress) return;
    event.preventDefault();
    go(link.getAttribute("href").slice(1));
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    outline.tree.paint = paintValue();
    outline.tree.draw(true);
  });

  const bar = make("div", {class: "bar-top"}, list, make("div", {class: "search"}, search, found));
  document.getElementById("app").replaceChildren(header(), make("main", {}, make("section", {class: "views", "aria-label": "Program"}, bar, panels), details));
  choose(0);
  if (!selected && data.selected >= 0) go(`v${data.selected}`);
  else show();
  document.body.classList.toggle("selected", selected !== "");
}

start();
