"""A GPT and a BERT side by side in one page: every number on the screen is one of the traces or of the readings."""

import math
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from regard.views.readings.compare import compare_models
from tests.browser.studio import Studio
from tests.views.readings.pairs import TEXT, make_bert, make_gpt

CLOSE = {"rtol": 0, "atol": 1e-6}
VIEW = "readings"


@pytest.fixture(scope="module")
def made():
    """Words on the left, word pieces between [CLS] and [SEP] on the right."""
    return compare_models(TEXT, make_gpt(), make_bert(), names=("small GPT", "small BERT"), written=4)


@pytest.fixture(scope="module")
def file(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("readings") / "both.html"
    made.page(path, precision="float32")
    return path


@pytest.fixture
def open_page(tabs, file):
    """The page in a tab, once both maps are drawn."""

    def go(hash: str = "", **more) -> Studio:
        tab = tabs.new("", **more)
        tab.page.goto(file.as_uri() + hash)
        studio = Studio(tab, "page")
        studio.view(VIEW).wait_for()
        studio.settled(VIEW)
        return studio

    return go


def weights(made, which, layer, head):
    return made.traces[which].layers[layer].weights[0, head].dense().numpy()


def shown_weights(studio, side, n):
    found = studio.probe_all(VIEW, "weight", [[side, i, j] for i in range(n) for j in range(n)])
    return np.array([np.nan if one is None else one for one in found]).reshape(n, n)


def row_of(studio, name):
    """The cells of a line of the table, as they read."""
    return studio.view(VIEW).locator(f'[data-row="{name}"] td').all_inner_texts()


def to_number(text):
    """The number that a text begins with; thousands stand apart."""
    found = re.match(r"[−\d.]+(e−?\d+)?", text.replace("\u202f", ""))
    return float(found[0].replace("−", "-"))


def place_of(studio, side, query, key):
    """The middle of a cell on the screen."""
    return studio.view(VIEW).evaluate(
        """(view, [side, query, key]) => {
             const plot = view.querySelector(`[data-side=${side}]`), box = plot.getBoundingClientRect();
             const cell = plot.regard.cell(query, key);
             return [box.left + cell.x + cell.width / 2, box.top + cell.y + cell.height / 2];
           }""",
        [side, query, key],
    )


def test_both_maps_show_the_weights_of_their_traces_and_only_the_first_is_hatched(open_page, made):
    studio = open_page("#/trace=0&with=1&view=readings&layer=2&head=1&beside=1,2")
    gpt, bert = (shown_weights(studio, side, one.tokens) for side, one in zip(("left", "right"), made.readings))
    n = made.readings[0].tokens
    causal = np.tril(np.ones((n, n), dtype=bool))
    assert_allclose(gpt[causal], weights(made, 0, 2, 1)[causal], **CLOSE)
    assert np.isnan(gpt[~causal]).all()
    assert_allclose(bert, weights(made, 1, 1, 2), **CLOSE)
    captions = studio.view(VIEW).locator('[data-part="caption"]').all_inner_texts()
    assert captions == [
        f"sees only what came before: {100 * (n + 1) / (2 * n):.1f} % of the map",
        "sees the whole text: 100 % of the map",
    ]
    assert studio.probe(VIEW, "top") == pytest.approx(max(np.nanmax(gpt), bert.max()), abs=1e-6)
    studio.shot("readings-light")


def test_the_table_says_the_measured_numbers_of_all_heads_and_of_this_one(open_page, made):
    studio = open_page("#/trace=0&with=1&view=readings&layer=1&head=0&beside=0,1")
    for name, field, scale in (
        ("may", "may_look", 100),
        ("back", "back", 100),
        ("itself", "itself", 100),
        ("ahead", "ahead", 100),
        ("distance", "distance", 1),
        ("entropy", "entropy", 1),
    ):
        cells = [to_number(text) for text in row_of(studio, name)]
        assert len(cells) == 4
        assert_allclose(
            cells[::2], [scale * getattr(one, field) for one in made.readings], rtol=0, atol=0.051 * scale / 100 + 1e-3
        )
    for which, side, layer, head in ((0, "left", 1, 0), (1, "right", 0, 1)):
        real, found = weights(made, which, layer, head), studio.probe(VIEW, "numbers", side)
        n = len(real)
        offset = np.arange(n)[None] - np.arange(n)[:, None]
        assert found["back"] == pytest.approx(real[offset < 0].sum() / n, abs=1e-6)
        assert found["ahead"] == pytest.approx(real[offset > 0].sum() / n, abs=1e-6)
        assert found["distance"] == pytest.approx((real * abs(offset)).sum() / n, abs=1e-5)
        logs = np.log2(real, where=real > 0, out=np.zeros_like(real))
        assert found["entropy"] == pytest.approx(-(real * logs).sum() / n, abs=1e-5)
    perplexity = [to_number(text) for text in row_of(studio, "perplexity")]
    assert_allclose(perplexity, [math.exp(-one.log_prob) for one in made.readings], rtol=5e-3)
    positions = [to_number(text) for text in row_of(studio, "positions")]
    assert positions == [one.writing.positions for one in made.readings]
    assert row_of(studio, "objective") == ["the next token", "masked words"]
    assert [int(re.sub(r"\D", "", text)) for text in row_of(studio, "parameters")] == [
        one.parameters for one in made.readings
    ]


def test_a_word_that_is_clicked_shows_what_each_model_expects_there(open_page, made):
    studio = open_page()
    gpt, bert = made.readings
    words = [TEXT[slice(*span)] for span in gpt.spans]
    at, there = (
        words.index("sat"),
        next(i for i, span in enumerate(bert.spans) if span == gpt.spans[words.index("sat")]),
    )
    studio.view(VIEW).locator(f'[data-place="{at}"]').click()
    assert studio.probe(VIEW, "gap") == {"left": at, "right": there}
    lists = studio.view(VIEW).locator(".list")
    for i, guess in enumerate((gpt.guesses[at], bert.guesses[there])):
        names = lists.nth(i).locator("li .name").all_inner_texts()
        assert names == [one.name for one in guess.top]
        shares = [to_number(text) / 100 for text in lists.nth(i).locator("li .number").all_inner_texts()]
        assert_allclose(shares, [one.share for one in guess.top], rtol=0, atol=6e-4)
        assert f"rank {guess.rank} " in lists.nth(i).locator('[data-part="real"]').inner_text()
    assert lists.nth(0).locator(".seen").inner_text() == "the unseen cats____"
    assert lists.nth(1).locator(".seen").inner_text() == "the unseen cats____on the mat"
    in_hand = studio.view(VIEW).locator(f'[data-place="{at}"]')
    assert in_hand.get_attribute("aria-pressed") == "true"
    assert in_hand.evaluate("element => element === document.activeElement")  # the next key still finds it


def test_what_is_pointed_at_or_clicked_on_one_side_is_so_on_the_other(open_page):
    studio = open_page()
    # "cats" is one word for the GPT, "cat" and "##s" for the BERT; the selection follows the longer part.
    studio.page.mouse.move(*place_of(studio, "left", 3, 2))
    studio.eventually(lambda: studio.probe(VIEW, "hover", "right")["query"] == 6)
    assert studio.probe(VIEW, "hover", "right")["key"] == 4
    studio.page.mouse.click(*place_of(studio, "right", 8, 5))  # "the", "##s"
    studio.eventually(lambda: studio.probe(VIEW, "picked", "left")["query"] == 5)
    assert studio.probe(VIEW, "picked", "left")["key"] == 2
    assert (studio.probe(VIEW, "picked", "right")["query"], studio.probe(VIEW, "picked", "right")["key"]) == (8, 4)
    studio.page.mouse.click(*place_of(studio, "right", 0, 7))  # [CLS], which the GPT does not have
    studio.eventually(lambda: studio.probe(VIEW, "picked", "right")["query"] == 0)
    assert studio.probe(VIEW, "picked", "left")["query"] is None
    studio.press("Escape", 2)
    studio.eventually(lambda: studio.probe(VIEW, "picked", "right")["query"] is None)


def test_each_side_has_a_layer_and_a_head_of_its_own_and_the_address_holds_them(open_page, made):
    studio = open_page()
    selects = studio.view(VIEW).locator(".pickers select")
    for number, value in enumerate(("0", "1", "1", "2")):
        selects.nth(number).select_option(value)
    studio.settled(VIEW)
    n = made.readings[1].tokens
    assert_allclose(shown_weights(studio, "right", n), weights(made, 1, 1, 2), **CLOSE)
    hash = studio.eventually(lambda: studio.page.evaluate("location.hash"), lambda found: "beside=1,2" in found)
    again = open_page(hash)
    picked = [(one["layer"], one["head"]) for one in (again.probe(VIEW, "picked", side) for side in ("left", "right"))]
    assert picked == [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("dark", {"color_scheme": "dark"}),
        ("zh", {"locale": "zh-CN"}),
        ("narrow", {"viewport": {"width": 800, "height": 860}}),
        ("phone", {"viewport": {"width": 420, "height": 860}, "locale": "zh-CN", "color_scheme": "dark"}),
    ],
)
def test_it_reads_in_the_dark_in_chinese_and_on_a_narrow_screen(open_page, name, more):
    studio = open_page(**more)
    view = studio.view(VIEW)
    assert view.locator("canvas").count() >= 2
    wide = view.locator(".rg-readings").evaluate("element => element.scrollWidth - element.clientWidth")
    assert wide <= 0
    if "locale" in more:
        assert "只能看前文" in view.inner_text()
    studio.shot(f"readings-{name}")
    view.locator(".numbers").scroll_into_view_if_needed()
    studio.shot(f"readings-{name}-numbers")


def test_a_page_without_readings_does_not_offer_the_view(tabs, page_file):
    tab = tabs.new("")
    tab.page.goto(page_file("stack").as_uri() + "#/view=readings")
    studio = Studio(tab, "page")
    assert "GPT vs BERT" not in studio.tabs()
    studio.view("map").wait_for()
