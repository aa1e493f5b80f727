"""The explorer's place in a notebook: alive, exported, opened again, and after its kernel is gone."""

import json
import time

import pytest

from tests.browser.conftest import SIZE
from tests.browser.studio import Studio
from tests.browser.tab import SHOTS
from tests.views.static.test_picture import executed

SETUP = """
import torch, regard
torch.manual_seed(0)
layer = regard.MultiHead(12, heads=3)
with torch.no_grad(), regard.watch(layer, ["The", "<b>cat</b>", "猫", "sat", "down"]) as trace:
    _ = layer(torch.randn(1, 5, 12))
"""


@pytest.fixture(scope="module")
def notebook():
    """A notebook that was run, as it is saved."""
    return executed(SETUP, "trace.see()", "trace.figure()")[0]


def drawn(pictures) -> bool:
    return all(picture.evaluate("one => one.complete && one.naturalWidth > 10") for picture in pictures.all())


@pytest.mark.parametrize("state", ["with the state of widgets", "without"])
def test_an_exported_notebook_shows_a_still_picture_offline(browser, notebook, tmp_path, state):
    exporters = pytest.importorskip("nbconvert.exporters")
    made = json.loads(json.dumps(notebook))
    if state == "without":
        made["metadata"].pop("widgets", None)
    import nbformat

    text, _ = exporters.HTMLExporter().from_notebook_node(nbformat.from_dict(made))
    file = tmp_path / "exported.html"
    file.write_text(text, encoding="utf-8")
    context = browser.new_context(viewport=SIZE, offline=True)
    page = context.new_page()
    page.goto(file.as_uri(), wait_until="domcontentloaded")
    still = page.locator(".regard-still")
    still.wait_for()
    assert still.locator("img").count() == 1  # three heads side by side
    assert drawn(still.locator("img"))
    assert "run this cell again" in still.inner_text()
    assert "重新运行此单元格" in still.inner_text()
    assert drawn(page.locator(".jp-OutputArea-output img"))
    assert "oading" not in page.locator("main").inner_text()
    SHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SHOTS / f"exported-{state.split()[0]}.png", full_page=True)
    context.close()


def test_a_live_explorer_takes_the_place_of_the_still_picture(tabs, lab):
    tab = tabs.new(lab.home)
    studio = Studio(tab, "notebook", lab.show(tab, "stack"))
    studio.open("map")
    studio.settled("map")
    still = tab.page.locator(".regard-still")
    assert still.count() == 1
    assert not still.is_visible()
    area = tab.page.locator(".jp-OutputArea-child")
    assert [one.is_visible() for one in area.all()] == [False, True]  # and leaves no gap


def test_a_notebook_that_is_opened_again_shows_the_still_picture(tabs, lab, notebook):
    file = lab.folder / "again.ipynb"
    made = json.loads(json.dumps(notebook))
    made["metadata"].pop("widgets", None)
    file.write_text(json.dumps(made), encoding="utf-8")
    tab = tabs.new(lab.home)
    tab.forgive([""])  # JupyterLab's own words about a widget without a model
    tab.page.goto(lab.url.format(file.name))
    still = tab.page.locator(".regard-still")
    still.wait_for()
    assert drawn(still.locator("img"))
    assert "run this cell again" in still.inner_text()
    tab.shot("opened-again")


def test_a_kernel_that_is_gone_says_to_run_the_cell_again(tabs, lab):
    tab = tabs.new(lab.home)
    kernel = lab.new_kernel()
    studio = Studio(tab, "notebook", lab.show(tab, "stack", kernel=kernel))
    studio.open("map")
    studio.settled("map")
    tab.forgive([""])  # JupyterLab itself has much to say about it
    lab.ask(f"/api/kernels/{kernel}/restart", {})
    end = time.monotonic() + 60
    while not studio.alerts() and time.monotonic() < end:
        studio.place(2, 3, query=4)
    assert any("run this cell again" in text for text in studio.alerts())
    tab.shot("kernel-restarted")
