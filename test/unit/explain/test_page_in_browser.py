# Part of mlir-shard, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the page in headless Chromium: with the keyboard, two widths and color schemes, and hostile names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from explain.browser import chromium, expect
from explain.pages import EVIL, LAYER, evil_page, explained, sums

import mlir_shard
from mlir_shard.explain.page.document import page_html
from mlir_shard.explain.suggestions import suggest

Open = Callable[..., Any]

# Both are read in one call because the page replaces rows while its layout settles.
_CELLS_OF_HEAD_AND_FIRST_ROW = """() => {
  const panel = [...document.querySelectorAll('.panel')].find((one) => one.getClientRects().length);
  const places = (row) => [...panel.querySelectorAll(`${row} .cell`)]
    .map((one) => one.getBoundingClientRect()).map(({left, width}) => [left, width]);
  return [places('.head'), places('.rows .row:first-child')];
}"""

# The least contrast of a visible text with its background, as defined by the Web Content Accessibility Guidelines.
_LEAST_CONTRAST = """() => {
  const light = ([r, g, b]) => {
    const linear = (one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    const [x, y, z] = [r, g, b].map((one) => linear(one / 255));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parts(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color.slice(0, 3);
    }
    return [255, 255, 255];
  };
  let least = [21, "nothing"];
  for (const element of document.querySelectorAll("#app *")) {
    const own = [...element.childNodes].filter((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own.length || !element.checkVisibility() || element.closest("svg")) continue;
    const [one, other] = [light(parts(getComputedStyle(element).color)), light(behind(element))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < least[0]) least = [contrast, `${element.className}: ${element.textContent}`];
  }
  return least;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Returns a function that opens a page. The test fails if a script of the page fails."""
    errors: list[str] = []
    contexts = []

    def open_page(text: str, width: int = 1280, scheme: str = "light") -> Any:
        file = tmp_path / "page.html"
        file.write_text(text, encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text))
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not errors


def layer_page() -> str:
    return explained(LAYER).html("layer")


def views(page: Any) -> Iterator[str]:
    """Shows the views of a page one after the other, and then the details of a value."""
    for number, tab in enumerate(page.get_by_role("tab").all(), 1):
        page.keyboard.press(str(number))
        expect(tab).to_have_attribute("aria-selected", "true")
        yield tab.inner_text()
    page.keyboard.press("1")
    page.keyboard.press("/")
    page.keyboard.type("dot_general")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    yield "details"


def shows(page: Any, name: str) -> None:
    """Waits for the details of the value of this name."""
    expect(page.locator("#details h2")).to_have_text(re.compile(rf"^\s*{re.escape(name)}"), use_inner_text=True)


def shows_other(page: Any, name: str) -> None:
    """Waits for the details of a value of another name."""
    expect(page.locator("#details h2")).not_to_have_text(re.compile(rf"^\s*{re.escape(name)}"), use_inner_text=True)


def focuses(page: Any, part: str) -> None:
    """Waits for this part of the page to have the focus."""
    expect(page.locator(f"{part}:focus")).to_have_count(1)


def test_a_value_shows_its_shards_its_chain_and_what_moves_it(opened: Open) -> None:
    page = opened(layer_page())
    page.locator(".rows .row", has_text="dot_general").first.click()
    details = page.locator("#details")
    shows(page, "dot_general")
    expect(details.locator(".shard")).to_have_count(4)
    expect(details.locator(".chain .origin")).to_contain_text("constraint")
    expect(details).to_contain_text("partial sum")
    # A link in the details leads to another value.
    page.locator(".rows .row", has_text="tanh").first.click()
    details.locator(".chain a").first.click()
    shows_other(page, "tanh")


def test_a_lost_axis_is_named_with_its_remedy(opened: Open) -> None:
    page = opened(layer_page())
    page.keyboard.press("/")
    page.keyboard.type("%closed")
    page.keyboard.press("Enter")
    expect(page.locator("#details")).to_contain_text("closed dimension")
    expect(page.locator("#details")).to_contain_text("To change it")


def test_the_keyboard_reaches_everything(opened: Open) -> None:
    page = opened(layer_page())
    page.keyboard.press("/")
    page.keyboard.type("tanh")
    page.keyboard.press("Enter")
    focuses(page, ".rows")
    shows(page, "tanh")
    page.keyboard.press("Enter")
    focuses(page, "#details")
    page.keyboard.press("Escape")
    focuses(page, ".rows")
    # The selection is kept when a search ends.
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    rows = page.locator(".rows:visible .row")
    expect(page.locator(".rows:visible .row.active")).to_contain_text("tanh")
    # Groups close and open.
    count = rows.count()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    expect(rows).not_to_have_count(count)
    assert rows.count() < count
    page.keyboard.press("ArrowRight")
    expect(rows).to_have_count(count)
    # The collectives are reached from the tabs.
    page.get_by_role("tab").first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("[role=tab][aria-selected=true]")).to_have_text("Communication")
    page.keyboard.press("2")
    page.keyboard.press("Home")
    expect(page.locator(".rows:visible .row.active")).to_have_count(1)
    page.keyboard.press("Enter")
    focuses(page, "#details")


def test_the_curve_of_memory_begins_at_the_peak(opened: Open) -> None:
    page = opened(layer_page())
    page.keyboard.press("4")
    slider = page.locator(".memory input")
    points = page.evaluate("JSON.parse(document.getElementById('data').textContent).memory.points")
    totals = [sum(both) for both in zip(points["values"], points["collectives"], strict=True)]
    expect(slider).to_have_value(str(totals.index(max(totals))))
    expect(page.locator(".memory polygon")).to_have_count(3)
    slider.focus()
    page.keyboard.press("End")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(f"operation {len(totals)} of {len(totals)}"))


def test_a_page_begins_with_the_value_that_was_asked_for(opened: Open) -> None:
    explanation = explained(LAYER)
    (asked,) = explanation.select("stablehlo.tanh")
    page = opened(page_html(explanation, "layer", selected=asked), 400)
    expect(page.locator("#details")).to_be_visible()
    shows(page, "tanh")


def test_tried_annotations_are_shown_where_nothing_is_selected(opened: Open) -> None:
    explanation = explained(LAYER)
    module = mlir_shard.parse(LAYER, filename="a.mlir")
    suggested = suggest(module, explanation, sources={"a.mlir": LAYER})
    page = opened(explanation.html("layer", suggested))
    items = page.locator("#details .suggestions li")
    assert suggested
    expect(items).to_have_count(len(suggested))
    expect(items.first).to_contain_text(suggested[0].change.sharding)
    items.first.locator("a").click()
    shows(page, suggested[0].tensor.name.rpartition("/")[2])


@pytest.mark.parametrize("width", [1280, 400])
def test_names_of_the_program_run_nothing(opened: Open, width: int) -> None:
    page = opened(evil_page(), width)
    for _ in views(page):
        assert page.evaluate("window.ran") is None
        assert page.locator("#app script, #app img").count() == 0
    assert EVIL in page.locator("#app").inner_text()
    assert page.title() == EVIL


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("make", [layer_page, evil_page])
def test_nothing_is_wider_than_the_page(opened: Open, make: Callable[[], str], width: int) -> None:
    page = opened(make(), width)
    for view in views(page):
        for part in ("document.documentElement", "document.body", "document.getElementById('details')"):
            assert page.evaluate(f"{part}.scrollWidth - {part}.clientWidth") <= 0, (view, part)


@pytest.mark.parametrize("width", [1280, 400])
def test_the_heads_of_columns_are_above_them(opened: Open, width: int) -> None:
    page = opened(layer_page(), width)
    expect(page.locator(".head:visible")).to_have_attribute("style", re.compile("border-inline-end-width"))
    for number in "123":
        page.keyboard.press(number)
        page.locator(".panel:visible .rows .row:first-child .cell").first.wait_for()
        head, row = page.evaluate(_CELLS_OF_HEAD_AND_FIRST_ROW)
        assert head and head == row


def test_arguments_are_called_by_the_part_of_their_name_that_is_no_group(opened: Open) -> None:
    named = LAYER.replace("%w: tensor<64x32xf32>", "%w: tensor<64x32xf32> loc(\"params.layers[0]['w']\")")
    page = opened(explained(named).html("layer"))
    expect(page.locator(".rows .name", has_text=re.compile(r"^\['w'\]$"))).to_have_count(1)
    page.get_by_text("['w']", exact=True).click()
    shows(page, "params.layers[0]['w']")


def test_causes_are_read_in_full_beside_ops_and_places_that_are_cut(opened: Open) -> None:
    page = opened(explained(LAYER.replace("step/layer_0/dot_general", "step/" + "long_" * 30)).html("layer"))
    page.keyboard.press("2")
    why = page.locator(".panel:visible .why-kind")
    why.first.wait_for()
    assert not why.evaluate_all("(all) => all.some((one) => one.scrollWidth > one.clientWidth)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_are_read_in_both_schemes(opened: Open, scheme: str) -> None:
    page = opened(layer_page(), scheme=scheme)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    for view in views(page):
        contrast, where = page.evaluate(_LEAST_CONTRAST)
        assert contrast >= 4.5, (view, where)


def test_a_page_is_used_in_the_frame_of_a_notebook(opened: Open) -> None:
    page = opened(f"<!doctype html>{explained(LAYER)._repr_html_()}").frames[1]
    page.locator(".rows .row", has_text="tanh").first.click()
    shows(page, "tanh")
    page.locator("#details .chain a").first.click()
    shows_other(page, "tanh")


def test_a_program_without_shardings_has_its_views(opened: Open) -> None:
    text = "func.func @main(%a: tensor<?xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {\n  return %b : tensor<4xf32>\n}\n"
    page = opened(explained(text).html())
    assert page.get_by_role("tab").all_inner_texts() == ["Program", "Communication", "Replicated"]
    assert "1 2 3" in page.locator("#details kbd").all_inner_texts()
    for number in "123":
        page.keyboard.press(number)
    page.keyboard.press("1")
    page.keyboard.press("/")
    page.keyboard.type("%b")
    page.keyboard.press("Enter")
    shows(page, "%b")


def test_details_take_the_place_of_the_list_where_the_page_is_narrow(opened: Open) -> None:
    page = opened(layer_page(), 400)
    expect(page.locator("#details")).not_to_be_visible()
    *_, last = views(page)
    assert last == "details"
    expect(page.locator("#details")).to_be_visible()
    page.locator(".back").click()
    expect(page.locator("#details")).not_to_be_visible()


def test_scrolling_draws_the_rows_in_sight_alone(opened: Open) -> None:
    count = 2000
    page = opened(explained(sums(count)).html("sums"))
    rows = page.locator(".rows:visible .row")
    assert rows.count() < 100
    first = rows.first.inner_text()
    page.evaluate("document.querySelector('.rows').scrollTop = 20000")
    expect(rows.first).not_to_have_text(first)
    # The rows fill the window.
    assert max(rows.evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().top)")) > 600
    assert rows.count() < 100
    page.keyboard.press("/")
    page.keyboard.type(f"%{count}")
    page.keyboard.press("Enter")
    shows(page, f"%{count}")
    assert rows.count() < 100
    # A chain through all operations shows its ends, and the rest on request.
    steps = page.locator("#details .chain li")
    shown = steps.count()
    assert shown < 20
    page.get_by_role("button", name="more").click()
    expect(steps).not_to_have_count(shown)
    assert steps.count() > count
