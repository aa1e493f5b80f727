"""What a reader does with hands and keys, in every host: zoom, pin, sort, words, colours, taking it along."""

import csv
import io
import re

import numpy as np
import pytest

from tests.browser.examples import SENTENCE

N = len(SENTENCE)
ALL = N * N - 1e-6  # cells


def seen(zoom) -> float:
    """How many cells are in sight; in a low cell of a notebook a zoom first takes rows away."""
    return (zoom["right"] - zoom["left"]) * (zoom["bottom"] - zoom["top"])


def zoom_of(studio):
    return studio.probe("map", "zoom")


@pytest.fixture
def map_of(studio):
    """The map, whole."""
    studio.open("map")
    studio.press("0")
    studio.settled("map")
    studio.eventually(lambda: zoom_of(studio), lambda zoom: zoom is not None and seen(zoom) >= ALL)
    return studio


def test_keys_and_wheel_and_buttons_zoom_and_one_key_shows_all_again(map_of):
    studio = map_of
    studio.press("+")
    near = studio.eventually(lambda: seen(zoom_of(studio)), lambda cells: cells < ALL)
    at = studio.eventually(lambda: studio.probe("map", "cell", 6, 6))
    box = studio.view("map").bounding_box()
    studio.page.mouse.move(box["x"] + at["x"] + 3, box["y"] + at["y"] + 3)
    studio.page.mouse.wheel(0, -240)
    nearer = studio.eventually(lambda: seen(zoom_of(studio)), lambda cells: cells < near)
    studio.page.mouse.wheel(0, 240)
    studio.eventually(lambda: seen(zoom_of(studio)), lambda cells: cells > nearer)
    studio.press("0")
    studio.eventually(lambda: seen(zoom_of(studio)), lambda cells: cells >= ALL)


def test_dragging_moves_what_is_seen(map_of):
    studio = map_of
    studio.press("+", 3)
    before = studio.eventually(lambda: zoom_of(studio), lambda zoom: seen(zoom) < ALL / 4)
    box = studio.view("map").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    studio.page.mouse.move(x, y)
    studio.page.mouse.down()
    studio.page.mouse.move(x - 60, y - 40, steps=4)
    studio.page.mouse.up()
    after = studio.eventually(lambda: zoom_of(studio), lambda zoom: zoom["top"] != before["top"])
    assert seen(after) == pytest.approx(seen(before), rel=1e-3)
    studio.press("0")


def test_pointing_shows_and_a_click_pins_the_exact_weight(map_of, trace_of):
    studio = map_of
    weight = float(trace_of("stack").layers[0].weights[0, 0, 7, 3])
    at = studio.eventually(lambda: studio.probe("map", "cell", 7, 3))
    studio.click("map", at)
    panel = studio.root.locator("aside.panel")
    exact = panel.locator("dd.number").first
    studio.eventually(lambda: exact.count() and exact.get_attribute("title"))
    assert float(exact.get_attribute("title")) == pytest.approx(weight, abs=1e-6)
    assert "猫" in panel.inner_text()
    studio.page.mouse.move(2, 2)
    assert float(exact.get_attribute("title")) == pytest.approx(weight, abs=1e-6), "a pin stays"
    studio.shot("map-pinned")
    studio.press("Escape", 2)
    studio.eventually(lambda: exact.count(), lambda count: count == 0 or not exact.get_attribute("title"))


def test_keys_change_head_and_layer_and_the_details_follow(map_of):
    studio = map_of
    studio.press("]", 2)
    studio.press("}")
    studio.eventually(lambda: "Layer 1, head 2" in studio.root.locator("aside.panel").inner_text())


def test_the_colour_scale_and_its_legend_change(map_of):
    studio = map_of
    scale = studio.root.locator("footer").get_by_role("combobox").first
    said = studio.view("map").inner_text()
    scale.select_option("log")
    studio.eventually(lambda: studio.view("map").inner_text(), lambda now: now != said)
    studio.shot("map-log")
    scale.select_option("linear")


def test_the_heads_view_shows_several_heads_and_listens_to_its_threshold(studio, trace_of):
    studio.open("heads")
    few = studio.eventually(lambda: studio.probe("heads", "lines"))
    slider = studio.view("heads").get_by_role("slider").first
    slider.fill("70")
    fewer = studio.eventually(lambda: studio.probe("heads", "lines"), lambda found: len(found) < len(few))
    assert min(line["weight"] for line in fewer) >= 0.48
    slider.fill("22")
    studio.eventually(lambda: studio.probe("heads", "lines"), lambda found: len(found) > len(fewer))
    studio.view("heads").get_by_role("checkbox").first.check()
    hidden = studio.eventually(
        lambda: studio.probe("heads", "lines"), lambda found: all(line["key"] not in (0, N - 1) for line in found)
    )
    weights = trace_of("stack").layers[0].weights[0, 0].dense().numpy().copy()
    weights[:, [0, N - 1]] = 0
    weights /= np.maximum(weights.sum(1, keepdims=True), 1e-30)
    for line in hidden:
        assert line["weight"] == pytest.approx(weights[line["query"], line["key"]], abs=1e-5)
    studio.view("heads").get_by_role("checkbox").first.uncheck()


def test_the_studio_speaks_both_languages(studio):
    studio.open("map")
    english = studio.tabs()
    studio.root.locator("header .ends button").first.click()
    chinese = studio.eventually(studio.tabs, lambda tabs: tabs != english)
    assert all(re.search("[\u4e00-\u9fff]", one) for one in chinese), chinese
    assert studio.root.get_attribute("lang") == "zh-Hans"
    studio.settled("map")
    studio.shot("map-zh")
    studio.root.locator("header .ends button").first.click()
    studio.eventually(studio.tabs, lambda tabs: tabs == english)


def test_light_and_dark(studio):
    studio.open("map")
    turn = studio.root.locator("header .ends button").nth(1)
    for _ in range(3):
        if studio.root.get_attribute("data-theme") == "dark":
            break
        turn.click()
        studio.page.wait_for_timeout(20)
    assert studio.root.get_attribute("data-theme") == "dark"
    studio.settled("map")
    studio.shot("map-dark")
    for _ in range(3):
        if studio.root.get_attribute("data-theme") == "light":
            break
        turn.click()
        studio.page.wait_for_timeout(20)
    assert studio.root.get_attribute("data-theme") == "light"


def test_help_opens_by_key_and_closes_by_escape(studio):
    studio.press("?")
    dialog = studio.root.get_by_role("dialog")
    dialog.wait_for()
    studio.shot("help")
    studio.page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")


@pytest.mark.parametrize("view", ["map", "heads", "model", "numbers", "flow"])
def test_a_picture_can_be_taken_along_as_svg_with_real_text(studio, view):
    studio.open(view)
    studio.place(0, 0, query=7, key=3)
    button = studio.root.get_by_role("button", name="SVG", exact=True)
    studio.eventually(button.is_enabled)
    if "settled" in studio.probes(view):
        studio.settled(view)
    ready = {"numbers": "cell", "flow": "visible", "heads": "lines"}.get(view)
    if ready:
        studio.eventually(lambda: studio.probe(view, ready))
    with studio.page.expect_download() as coming:
        button.click()
    text = coming.value.path().read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert "</text>" in text or "<mtext" in text or "<foreignObject" in text
    assert "<script" not in text
    if view in ("map", "heads", "flow"):
        assert "猫" in text


def test_the_map_can_be_taken_along_as_a_table(map_of, trace_of):
    studio = map_of
    with studio.page.expect_download() as coming:
        studio.root.get_by_role("button", name="CSV", exact=True).click()
    rows = list(csv.reader(io.StringIO(coming.value.path().read_text(encoding="utf-8-sig"))))
    numbers = [float(one) for row in rows[1:] for one in row if re.fullmatch(r"[\d.]+(e-?\d+)?", one)]
    wanted = trace_of("stack").layers[0].weights[0, 0].dense().numpy()
    for weight in wanted[7, :8]:
        assert min(abs(one - weight) for one in numbers) < 1e-6
