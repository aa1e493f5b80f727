"""Deep links hold the whole selection; back and forward work. A notebook's cell has no address of its own."""

import pytest

LINK = "#/view=map&layer=1&head=2&q=7&k=3&zoom=1,1,10,10"


@pytest.mark.parametrize("kind", ["page", "served"])
def test_a_link_opens_the_same_place(kind, open_in):
    studio = open_in(kind, "stack", LINK)
    studio.settled("map")
    panel = studio.root.locator("aside.panel")
    studio.eventually(lambda: "Layer 1, head 2" in panel.inner_text() and "猫" in panel.inner_text())
    zoom = studio.probe("map", "zoom")  # at least what the link names, in cells that stay square
    assert (zoom["left"], zoom["top"]) != (0, 0)
    assert zoom["right"] - zoom["left"] < 13
    assert zoom["left"] <= 1
    assert zoom["right"] >= 10


@pytest.mark.parametrize("kind", ["page", "served"])
def test_the_address_follows_and_back_goes_back(kind, open_in):
    studio = open_in(kind, "stack")
    for view in ("map", "heads", "numbers"):
        studio.page.wait_for_timeout(500)  # as a reader goes: what comes faster is one step for the way back
        studio.open(view)
        studio.eventually(lambda view=view: f"view={view}" in studio.page.url)
    studio.page.go_back()
    studio.view("heads").wait_for()
    studio.page.go_forward()
    studio.view("numbers").wait_for()
    assert "token" not in studio.page.url


@pytest.mark.parametrize("hash", ["#/view=nonsense&layer=99&head=-1&q=1e9&zoom=a,b", "#%E0%A4%A", "#/layer=9999999999"])
def test_a_link_to_nowhere_opens_something(hash, open_in):
    studio = open_in("page", "stack", hash)
    studio.settled("map")


def test_python_says_where_a_widget_begins_and_hears_where_it_is(tabs, lab):
    from tests.browser.studio import Studio

    tab = tabs.new(lab.home)
    studio = Studio(tab, "notebook", lab.show(tab, "stack", "layer=2, head=1, height=480"))
    panel = studio.root.locator("aside.panel")
    studio.eventually(lambda: "Layer 2, head 1" in panel.inner_text())
    assert studio.root.bounding_box()["height"] == pytest.approx(480, abs=4)
