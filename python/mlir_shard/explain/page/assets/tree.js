// Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Trees of which only the rows in sight are elements, so that programs of any size scroll alike.

const ROW_HEIGHT = 24;
const ROWS_BEYOND = 12;

/** Where there is room for either a list or details. */
const narrow = window.matchMedia("(max-width: 760px)");

/**
 * A tree with a row for each node.
 *
 * A node has `children`, `parent` (null for roots) and `isOpen`. `cells(node)` makes the contents of its row, the first of
 * which is indented; `text(node)` is what a search looks at; `chosen(node)` is called when a row becomes the active one,
 * `entered(node)` for the Enter key and a double click.
 */
class Tree {
  constructor({label, head, cells, text, chosen, entered, kind}) {
    Object.assign(this, {cells, text, chosen, entered});
    this.rows = [];
    this.active = -1;
    this.shown = new Map();
    this.matches = null;
    this.id = `tree-${Tree.count++}`;
    this.space = make("div", {class: "space", role: "presentation"});
    this.body = make("div", {class: "rows", role: "tree", tabindex: "0", "aria-label": label}, this.space);
    this.head = make("div", {class: "row head", "aria-hidden": "true"}, head.map((text) => make("span", {class: "cell"}, text)));
    this.map = make("canvas", {class: "map", "aria-hidden": "true"});
    this.element = make("div", {class: `tree ${kind}`}, this.head, make("div", {class: "scroll"}, this.body, this.map));
    this.body.addEventListener("scroll", () => this.draw(), {passive: true});
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => this.click(event));
    this.body.addEventListener("dblclick", () => this.active >= 0 && this.entered(this.rows[this.active].node));
    this.map.addEventListener("pointerdown", (event) => this.jump(event));
    this.map.addEventListener("pointermove", (event) => event.buttons && this.jump(event));
    new ResizeObserver(() => this.resize()).observe(this.body);
  }

  setRoots(roots) {
    this.roots = roots;
    this.refresh();
  }

  /** Finds the rows again after nodes were opened or closed, or the search has changed; keeps the active one. */
  refresh() {
    const active = this.active >= 0 ? this.rows[this.active].node : null;
    this.rows = [];
    const add = (nodes, level) => {
      const visible = this.matches ? nodes.filter((node) => this.matches.has(node)) : nodes;
      visible.forEach((node, at) => {
        this.rows.push({node, level, position: at + 1, size: visible.length});
        if (node.children.length && this.isOpen(node)) add(node.children, level + 1);
      });
    };
    add(this.roots, 1);
    this.active = active ? this.rows.findIndex((row) => row.node === active) : -1;
    this.space.style.height = `${this.rows.length * ROW_HEIGHT}px`;
    this.draw(true);
  }

  isOpen(node) {
    return this.matches ? !node.isShut : node.isOpen;
  }

  setOpen(node, isOpen) {
    if (this.matches) node.isShut = !isOpen;
    else node.isOpen = isOpen;
    this.refresh();
  }

  /** Shows the nodes whose texts have all the words of a search, with what is around them; returns how many match. */
  search(words) {
    this.matches = null;
    let count = 0;
    if (words.length) {
      this.matches = new Set();
      const visit = (node) => {
        node.isShut = false;
        let isIn = words.every((word) => this.text(node).includes(word));
        count += isIn && !node.children.length;
        for (const child of node.children) isIn = visit(child) || isIn;
        if (isIn) this.matches.add(node);
        return isIn;
      };
      this.roots.forEach(visit);
    }
    this.refresh();
    return count;
  }

  /** Makes a node the active one, opens what is around it and scrolls to it. */
  reveal(node, isQuiet) {
    if (this.matches && !this.matches.has(node)) this.matches = null;
    for (let at = node.parent; at; at = at.parent) {
      at.isOpen = true;
      at.isShut = false;
    }
    this.refresh();
    this.setActive(this.rows.findIndex((row) => row.node === node), isQuiet);
  }

  setActive(index, isQuiet) {
    if (index < 0 || index >= this.rows.length) return;
    this.active = index;
    const [top, height] = [index * ROW_HEIGHT, this.body.clientHeight];
    if (top < this.body.scrollTop) this.body.scrollTop = top;
    else if (top + ROW_HEIGHT > this.body.scrollTop + height) this.body.scrollTop = top + ROW_HEIGHT - height;
    this.draw(true);
    if (!isQuiet) this.chosen(this.rows[index].node);
  }

  resize() {
    // The columns of the head are those of the rows, beside which are a scroll bar and the map.
    this.head.style.borderInlineEndWidth = `${this.element.clientWidth - this.body.clientWidth}px`;
    this.draw(true);
  }

  draw(isAll) {
    const first = Math.max(Math.floor(this.body.scrollTop / ROW_HEIGHT) - ROWS_BEYOND, 0);
    const seen = Math.ceil(this.body.clientHeight / ROW_HEIGHT) + 2 * ROWS_BEYOND;
    const last = Math.min(first + seen, this.rows.length);
    for (const [index, element] of this.shown) {
      if (isAll || index < first || index >= last) {
        element.remove();
        this.shown.delete(index);
      }
    }
    for (let index = first; index < last; index += 1) {
      if (!this.shown.has(index)) {
        const element = this.row(index);
        this.shown.set(index, element);
        this.space.append(element);
      }
    }
    if (this.active >= 0) this.body.setAttribute("aria-activedescendant", `${this.id}-${this.active}`);
    else this.body.removeAttribute("aria-activedescendant");
    if (isAll) this.drawMap();
    this.drawSight();
  }

  row(index) {
    const {node, level, position, size} = this.rows[index];
    const hasChildren = node.children.length > 0;
    const cells = this.cells(node);
    const element = make(
      "div",
      {
        class: `row${index === this.active ? " active" : ""}${hasChildren ? " group" : ""}`,
        role: "treeitem",
        id: `${this.id}-${index}`,
        "aria-level": level,
        "aria-posinset": position,
        "aria-setsize": size,
        "aria-selected": index === this.active ? "true" : "false",
        "aria-expanded": hasChildren ? String(this.isOpen(node)) : null,
        "data-index": index,
      },
      cells.map((cell, at) => {
        const marker = at ? null : make("span", {class: "twist", "aria-hidden": "true"});
        const made = make("span", {class: "cell"}, marker, cell);
        if (!at) made.style.paddingInlineStart = `${(level - 1) * 14}px`;
        return made;
      }),
    );
    element.style.top = `${index * ROW_HEIGHT}px`;
    return element;
  }

  click(event) {
    const row = event.target.closest(".row");
    if (!row) return;
    const index = Number(row.dataset.index);
    const {node} = this.rows[index];
    this.setActive(index);
    if (node.children.length && (event.target.closest(".twist") || !node.isChoice)) this.setOpen(node, !this.isOpen(node));
    else if (narrow.matches) this.entered(node);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(Math.floor(this.body.clientHeight / ROW_HEIGHT) - 1, 1);
    const row = this.rows[this.active];
    const moves = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.rows.length, End: this.rows.length};
    if (event.key in moves) {
      const to = this.active + moves[event.key];
      this.setActive(Math.min(Math.max(to, 0), this.rows.length - 1));
    } else if (event.key === "ArrowRight" && row) {
      if (row.node.children.length && !this.isOpen(row.node)) this.setOpen(row.node, true);
      else if (row.node.children.length) this.setActive(this.active + 1);
    } else if (event.key === "ArrowLeft" && row) {
      if (row.node.children.length && this.isOpen(row.node)) this.setOpen(row.node, false);
      else if (row.node.parent) this.setActive(this.rows.findIndex((one) => one.node === row.node.parent));
    } else if (event.key === "Enter" && row) {
      if (row.node.children.length && !row.node.isChoice) this.setOpen(row.node, !this.isOpen(row.node));
      else this.entered(row.node);
    } else return;
    event.preventDefault();
  }

  // The map: all rows at once, in the colors that `paint(node)` gives.

  drawMap() {
    const {width, height} = this.map.getBoundingClientRect();
    if (!this.paint || !width || !height) return;
    const scale = window.devicePixelRatio || 1;
    this.map.width = width * scale;
    this.map.height = height * scale;
    const context = this.map.getContext("2d", {willReadFrequently: true});
    const count = this.rows.length;
    const each = Math.max(Math.min((height * scale) / count, 4 * scale), 1);
    this.mapHeight = Math.min(height, (each * count) / scale);
    const step = Math.max(count / (height * scale), 1);
    for (let at = 0; at < count; at += step) {
      const colors = this.paint(this.rows[Math.floor(at)].node);
      const top = (at / count) * this.mapHeight * scale;
      colors.forEach((color, part) => {
        context.fillStyle = color;
        const begin = (part * width * scale) / colors.length;
        context.fillRect(begin, top, (width * scale) / colors.length, Math.max(each - (each > 2 ? 1 : 0), 1));
      });
    }
    this.mapImage = context.getImageData(0, 0, Math.max(this.map.width, 1), Math.max(this.map.height, 1));
  }

  /** The part of the map that is in sight. */
  drawSight() {
    if (!this.mapImage || !this.rows.length) return;
    const context = this.map.getContext("2d");
    const scale = window.devicePixelRatio || 1;
    const unit = (this.mapHeight * scale) / (this.rows.length * ROW_HEIGHT);
    context.putImageData(this.mapImage, 0, 0);
    context.strokeStyle = getComputedStyle(this.map).color;
    const height = Math.max(this.body.clientHeight * unit, 6 * scale);
    context.strokeRect(0.5, this.body.scrollTop * unit + 0.5, this.map.width - 1, height - 1);
  }

  jump(event) {
    if (!this.mapHeight) return;
    const {top} = this.map.getBoundingClientRect();
    const share = Math.min((event.clientY - top) / this.mapHeight, 1);
    this.body.scrollTop = share * this.rows.length * ROW_HEIGHT - this.body.clientHeight / 2;
  }
}
Tree.count = 0;
