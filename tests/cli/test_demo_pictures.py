"""`regard demo pictures`: each section is one run of its model, and what it draws is where that model looked."""

import json
import re
from xml.etree import ElementTree

import pytest
import torch
from numpy.testing import assert_allclose

from regard.cli.demo_pictures import PICTURES, write_demo_pictures
from regard.cli.demo_sections import make_sections
from regard.data.drawn_digits import draw_digit
from regard.data.picture_file import as_png
from regard.data.shapes import make_scene
from regard.models import GlimpseConfig, VitConfig, embedded, store
from regard.tasks.picture_captioner import open_captioner
from regard.tasks.picture_classifier import open_picture_classifier
from regard.views.article.page import section_markup
from regard.views.explorer.bundle import BUILT
from tests.cli.run import run

BUILDS = pytest.mark.skipif(not BUILT.exists(), reason="the explorer is not built; run make bundle")
FACTS = {"classes": [*"0123456789"], "pixels": {"image_mean": [0.13], "image_std": [0.31]}, "scores": {"accuracy": 0.5}}


def tiny_pictures(folder):
    """A ViT of 4 × 4 patches and a network of glimpses, as a run would have left them."""
    torch.manual_seed(3)
    sizes = {"image_height": 28, "image_width": 28, "channels": 1, "labels": 10}
    made = {
        "digits": VitConfig(**sizes, patch_size=7, width=12, heads=3, layers=2),
        "glimpses": GlimpseConfig(**sizes, glimpses=4, glimpse_size=6, width=32),
    }
    for name, config in made.items():
        model = config.build()
        with torch.no_grad():
            for weights in model.parameters():
                weights.mul_(3)  # so that it looks here rather than there
        store.write(folder / name, model, config, FACTS | {"name": name, "command": f"regard train picture --{name}"})
    return {name: str(folder / name) for name in made}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tiny_pictures(tmp_path_factory.mktemp("pictures"))


@pytest.fixture(scope="module")
def drawn(models):
    """Each section as a tree, by its name."""
    made, left_out = make_sections(PICTURES, models)
    assert left_out == {}
    return {one.name: ElementTree.fromstring(section_markup(one, "#/x")) for one in made}


def figures(tree, heading):
    rows = next(one for one in tree.iter("div") if one.get("class") == "rows")
    return list(next(part for head, part in zip(rows[::2], rows[1::2]) if head.text == heading).iter("figure"))


def test_the_classes_are_those_of_the_model(drawn, models):
    for name, digit in {"digits": 5, "glimpses": 3}.items():
        shares = open_picture_classifier(models[name]).classify([as_png(draw_digit(digit))])[0]
        table = next(one for one in drawn[name].iter("table"))
        said = {row[0].text: float(row[1].text) for row in table}
        assert_allclose([said[one] for one in FACTS["classes"]], shares, rtol=0, atol=5.1e-4)


def test_the_tints_are_rollout_and_the_heads_of_the_last_layer(drawn, models):
    trace = open_picture_classifier(models["digits"]).trace(as_png(draw_digit(5)))
    shown = figures(drawn["digits"], "What it looked at")
    last = trace.layers[-1].weights.dense()[0, :, 0, 1:]
    for box, wanted in zip(shown, [trace.rollout(0)[0, 1:], *last], strict=True):
        tints = [float(one.get("fill-opacity")) for one in box.iter("rect")]
        assert_allclose(tints, 0.8 * wanted / wanted.max(), rtol=0, atol=6e-4)
        assert [(one.get("x"), one.get("y")) for one in box.iter("rect")][5] == ("7", "7")


def test_the_way_is_where_the_model_looked_and_what_it_saw_is_cut_out_there(drawn, models):
    opened = open_picture_classifier(models["glimpses"])
    places = ((opened.find_glimpses(as_png(draw_digit(3))) + 1) * 14).round().int().tolist()
    assert len({tuple(one) for one in places}) > 1
    [box] = figures(drawn["glimpses"], "Where it looked")
    [line] = box.iter("polyline")
    assert line.get("points") == " ".join(f"{column},{row}" for row, column in places)
    cuts = [one.find("svg").get("viewBox").split() for one in figures(drawn["glimpses"], "What it saw")]
    assert cuts == [[str(column - 3), str(row - 3), "6", "6"] for row, column in places]


def test_each_word_of_the_caption_is_the_picture_with_what_it_took(drawn):
    opened, scene = open_captioner("shapes-captioner"), make_scene(3, "test", 4)
    pixels = opened.fit(as_png(scene.pixels))
    [written] = opened.write([pixels])
    [said] = [one.text for one in drawn["captions"].iter("p") if one.get("class") == "said"]
    assert said == written.text == scene.caption
    shown = figures(drawn["captions"], "Where it looked")
    assert [one.find("figcaption").text for one in shown] == scene.caption.split()
    map_of = opened.trace(pixels, written).layers[0].weights.dense()[0, 0].detach()  # words × locations
    for box, weights in zip(shown, map_of, strict=False):
        tints = [float(one.get("fill-opacity")) for one in box.iter("rect")]
        assert_allclose(tints, 0.8 * weights / weights.max(), rtol=0, atol=6e-4)
    row, column = divmod(int(map_of[-2].argmax()), 12)  # of "star"; the end comes after it
    assert scene.things[1].shape == "star"
    assert scene.things[1].holds(4 * row + 2.0, 4 * column + 2.0)


@BUILDS
def test_the_page_holds_the_pictures_and_the_explorer_opens_over_them(models, tmp_path):
    said = write_demo_pictures(tmp_path, models)
    written = (tmp_path / "demo-pictures.html").read_text(encoding="utf-8")
    assert [line.partition(":")[0] for line in said.splitlines()[:2]] == ["digits", "glimpses"]
    assert re.findall(r'<section id="(\w+)">', written) == ["digits", "glimpses", "captions", "explorer"]
    assert written.count("#/see&amp;trace=1&amp;view=image&amp;layer=0&amp;head=0") >= 1
    about = json.loads(re.search(r'id="about">(.*?)</script>', written, re.DOTALL)[1])
    assert [one["info"]["picture"]["width"] for one in about["traces"]] == [28, 28, 48]
    assert about["traces"][1]["info"]["picture"]["glimpses"]["size"] == 6


def test_a_model_that_is_not_here_is_left_out_by_name(models, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(embedded, "names", list)
    made, left_out = make_sections(PICTURES, {"digits": models["digits"]})
    assert [one.name for one in made] == ["digits"]
    assert "no embedded model 'glimpses'" in left_out["glimpses"]
    code, printed, said = run(monkeypatch, capsys, "demo", "pictures", "--folder", str(tmp_path))
    assert (code, printed) == (2, "")
    assert "no embedded models" in said


def test_every_text_of_a_section_stays_text(models, tmp_path):
    hostile = "<b>a</b>"
    opened = embedded_copy(models["digits"], tmp_path / "hostile", hostile)
    [one], _ = make_sections(PICTURES[:1], {"digits": str(opened)})
    assert hostile not in section_markup(one, "#/x")
    assert "&lt;b&gt;" in section_markup(one, "#/x")


def embedded_copy(model, folder, name):
    """The same model with this name for every class."""
    facts = FACTS | {"classes": [f"{name}{number}" for number in range(10)]}
    opened = open_picture_classifier(model)
    store.write(folder, opened.model, opened.model.config, facts)
    return folder
