"""Where models look in a picture: windows put back, rollout, the way of glimpses, and a picture that is dropped."""

import base64

import numpy as np
import pytest
import torch

import regard
from regard.cli.demo_pictures import PICTURES
from regard.cli.demo_sections import make_sections
from regard.data.drawn_digits import draw_digit
from regard.data.picture_file import as_png
from regard.models import SwinConfig
from regard.tasks.picture_classifier import open_picture_classifier
from regard.views.article.page import article_page
from tests.browser.served import Server
from tests.browser.studio import Studio
from tests.cli.test_demo_pictures import tiny_pictures

DROP = """(element, [data, name]) => {
  const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0)), held = new DataTransfer();
  held.items.add(new File([bytes], name, { type: "image/png" }));
  element.dispatchEvent(new DragEvent("drop", { dataTransfer: held, bubbles: true, cancelable: true }));
}"""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tiny_pictures(tmp_path_factory.mktemp("pictures"))


def shows(studio, wanted, most=1e-3):
    """Wait until the image view shows these weights, patch by patch."""
    questions = [[patch] for patch in range(len(wanted))]
    studio.eventually(
        lambda: studio.probe_all("image", "weight", questions),
        lambda found: None not in found and np.allclose(found, wanted, rtol=0, atol=most),
    )


def test_rollout_and_the_way_of_glimpses_stand_over_the_digits(tabs, models, tmp_path):
    sections, _ = make_sections(PICTURES, models)
    (tmp_path / "pictures.html").write_text(article_page("Pictures", "Two models.", sections), encoding="utf-8")
    tab = tabs.new("")
    tab.page.goto((tmp_path / "pictures.html").as_uri())
    studio = Studio(tab, "page")
    tab.shot("pictures-sections")
    tab.page.locator("a.see").nth(0).click()
    view = studio.view("image")
    view.wait_for()
    trace = open_picture_classifier(models["digits"]).trace(as_png(draw_digit(5)))
    shows(studio, trace.layers[1].weights.dense()[0, 0, 0, 1:].numpy())
    view.locator('[data-do="rollout"]').select_option("all")
    shows(studio, trace.rollout(0)[0, 1:].numpy())
    studio.shot("pictures-rollout")
    tab.page.locator("a.see").nth(1).click()
    studio.eventually(lambda: view.locator("canvas.glimpse").count(), lambda count: count == 4)
    view.locator("button.chip").nth(1).click()
    seen = open_picture_classifier(models["glimpses"]).trace(as_png(draw_digit(3))).layers[0].weights.dense()[0, 0, 1]
    shows(studio, seen[:-1].numpy())
    studio.shot("pictures-glimpses")


def test_windows_of_a_swin_lie_where_they_were_cut_out(tabs, tmp_path):
    torch.manual_seed(2)
    config = SwinConfig(24, 24, patch_size=2, width=12, depths=(2, 1), heads=(2, 3), window=4, labels=3, channels=1)
    model = config.build().eval()
    with torch.no_grad(), regard.watch(model) as trace:
        for weights in model.parameters():
            weights.mul_(4)
        model(torch.randn(1, 1, 24, 24))
    trace.page(tmp_path / "swin.html")
    tab = tabs.new("")
    tab.page.goto((tmp_path / "swin.html").as_uri())
    studio = Studio(tab, "page")
    studio.open("image")
    for layer, side in ((1, 12), (2, 6)):
        whole = trace.layers[layer].whole()
        assert whole.weights.shape[-2:] == (side * side, side * side + (side == 6))  # 6 cells fill no windows of 4
        studio.place(layer, 1, query=side + 2)
        wanted = whole.weights.dense()[0, 1, side + 2, : side * side].numpy()
        shows(studio, wanted)
        assert 0 < (wanted > 0).sum() < side * side  # elsewhere nothing is looked at
        studio.shot(f"pictures-swin-{layer}")


def test_a_picture_that_is_dropped_runs_through_the_first_model_that_sees(tabs, tmp_path):
    server = Server(tmp_path)
    try:
        tab = tabs.new(server.home)
        tab.page.goto(server.address())
        studio = Studio(tab, "served")
        data = as_png(draw_digit(7))
        studio.root.locator(".frame").evaluate(DROP, [base64.b64encode(data).decode(), "seven.png"])
        studio.view("image").wait_for()
        trace = open_picture_classifier("digits").trace(data)
        shows(studio, trace.layers[0].weights.dense()[0, 0, 0, 1:].numpy(), 1e-5)
        assert "seven.png" in studio.root.locator("header").inner_text()
        studio.shot("pictures-dropped")
    finally:
        server.stop()
