"""The page of `regard demo tasks`: sections to read, and below them the explorer, which their links open."""

import pytest

from regard.cli.demo_sections import make_sections
from regard.cli.demo_tasks import TASKS
from regard.views.article.page import article_page, run_address
from tests.browser.studio import Studio
from tests.cli.tiny_tasks import tiny_models

NARROW = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}


@pytest.fixture(scope="module")
def sections():
    return make_sections(TASKS, tiny_models())[0]


@pytest.fixture(scope="module")
def address(sections, tmp_path_factory):
    path = tmp_path_factory.mktemp("tasks") / "demo-tasks.html"
    path.write_text(article_page("All tasks", "Each of them once.", sections), encoding="utf-8")
    return path.as_uri()


def open_run(studio, run, number):
    """Follow the link of a section; the explorer must be in view and show a weight of the head that the link names."""
    studio.page.locator("a.see").nth(number).click()
    studio.eventually(lambda: studio.root.locator("select.current").input_value(), lambda now: now == str(number))
    top = studio.page.locator("#regard").evaluate("element => element.getBoundingClientRect().top")
    assert abs(top) < 60
    wanted = dict(part.split("=") for part in run_address(number, run).split("&") if "=" in part)
    layer = run.trace.layers[int(wanted["layer"])]
    studio.eventually(lambda: studio.root.locator("aside.panel").inner_text(), lambda text: layer.name in text)
    studio.settled("map")
    weight = float(layer.weights[0, int(wanted["head"]), 0, 2])
    assert studio.probe("map", "weight", 0, 2) == pytest.approx(weight, abs=1e-3)


def test_a_section_opens_its_run_in_the_explorer_below(tabs, address, sections):
    tab = tabs.new("")
    page = tab.page
    page.goto(address)
    studio = Studio(tab, "page")
    assert page.evaluate("[scrollX, scrollY]") == [0, 0]  # it is read from its beginning
    assert page.locator("main > section").evaluate_all("all => all.map(one => one.id)") == [
        one.name for one in sections
    ]
    assert studio.root.locator("select.current option").all_inner_texts() == [one.run.name for one in sections]
    for number in (4, 1):
        open_run(studio, sections[number].run, number)
    tab.shot("demo-tasks-explorer")
    page.locator('nav a[href="#fill"]').click()
    assert abs(page.locator("#fill").evaluate("element => element.getBoundingClientRect().top")) < 2
    page.keyboard.press("ArrowDown")  # a key of the text, not of the explorer
    assert studio.root.locator("select.current").input_value() == "1"
    studio.eventually(
        lambda: page.locator("#fill").evaluate("one => one.getBoundingClientRect().top"), lambda y: y < -9
    )


def test_it_reads_on_a_phone_and_in_the_dark(tabs, address):
    tab = tabs.new("", **NARROW)
    tab.page.goto(address)
    Studio(tab, "page")
    assert tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    ground = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(18, 22, 29)"
    assert tab.page.locator(".chip").first.evaluate("one => getComputedStyle(one).fontSize") >= "12px"
    tab.shot("demo-tasks-phone")
