"""What needs a model: run, write, edit, and keep; in the browser of `regard serve`."""

import pytest


@pytest.fixture
def translated(open_in):
    """A studio in which the embedded translator has just translated a sentence."""
    studio = open_in("served", "stack")
    studio.root.get_by_role("combobox").first.select_option("en-zh-grammar")
    field = studio.root.locator("textarea[data-text]")
    field.fill("The cat sat on the mat.")
    before = studio.page.url
    studio.root.get_by_role("button", name="Run", exact=True).click()
    studio.eventually(lambda: studio.page.url, lambda url: url != before and "trace=" in url)
    studio.eventually(lambda: studio.root.get_by_role("tablist").count() == 2)
    return studio


def test_a_text_is_translated_and_its_attention_shown(translated):
    studio = translated
    attentions = studio.root.get_by_role("tablist").nth(1)
    attentions.get_by_role("tab", name="cross").click()
    studio.open("map")
    studio.settled("map")
    weights = studio.eventually(
        lambda: studio.grid("map", "weight", 3, 4), lambda found: all(one is not None for row in found for one in row)
    )
    assert all(0 <= one <= 1 for row in weights for one in row)
    studio.shot("translated")


def test_a_muted_head_changes_the_output_and_can_be_compared(translated):
    studio = translated
    studio.root.get_by_role("tablist").nth(1).get_by_role("tab", name="cross").click()
    studio.open("edit")
    view = studio.view("edit")
    heads = view.locator("button.mute")
    for head in range(heads.count()):
        heads.nth(head).click()
    assert heads.first.get_attribute("aria-pressed") == "true"
    assert len(studio.probe("edit", "edits")) >= 1
    view.locator("button.strong").click()
    effect = studio.eventually(lambda: studio.probe("edit", "effect"))
    assert effect["trace"]
    assert effect["beforeText"]
    assert effect["beforeText"] != effect["afterText"]
    studio.eventually(lambda: effect["beforeText"] in view.inner_text())
    studio.shot("edited")
    view.get_by_role("button", name="compare").first.click()
    studio.view("compare").wait_for()
    studio.settled("compare")
    studio.eventually(lambda: studio.probe("compare", "difference", 0, 0) is not None)
    studio.shot("edited-compare")


def test_an_edge_is_blocked_by_clicking_it(translated):
    studio = translated
    studio.open("edit")
    canvas = studio.view("edit").locator("canvas.block-map")
    canvas.wait_for()
    studio.eventually(lambda: canvas.bounding_box()["width"] > 20)
    canvas.click(position={"x": 4, "y": 4})
    edits = studio.eventually(lambda: studio.probe("edit", "edits"))
    assert (edits[0]["kind"], edits[0]["query"], edits[0]["key"]) == ("block", 0, 0)


def test_tokens_arrive_while_a_model_writes(open_in):
    studio = open_in("served", "stack")
    studio.root.get_by_role("combobox").first.select_option("induction")
    field = studio.root.locator("textarea[data-text]")
    if not field.input_value():
        field.fill(field.get_attribute("placeholder"))
    before = studio.page.url
    studio.root.get_by_role("button", name="Run", exact=True).click()
    studio.eventually(lambda: studio.page.url, lambda url: url != before)
    studio.open("map")
    studio.settled("map")
    studio.shot("written")


def test_a_run_is_named_and_reopened_by_its_link(translated, tabs, server):
    from tests.browser.studio import Studio

    url = translated.page.url
    tab = tabs.new(server.home)
    tab.page.goto(server.first)
    tab.page.goto(url)
    again = Studio(tab, "served")
    again.open("map")
    again.settled("map")
    assert "The cat sat on the mat." in again.root.locator("textarea[data-text]").input_value()


def test_a_text_longer_than_the_model_takes_is_refused_and_stays(open_in):
    studio = open_in("served", "stack")
    studio.root.get_by_role("combobox").first.select_option("en-zh-grammar")
    text = "The cat sat on the mat . " * 2000
    field = studio.root.locator("textarea[data-text]")
    field.fill(text)
    studio.root.get_by_role("button", name="Run", exact=True).click()
    notice = studio.root.locator(".notice")
    notice.wait_for()
    assert len(notice.inner_text()) > 30
    assert field.input_value() == text
    studio.shot("bad-too-long")


def test_the_page_button_gives_a_page_that_opens_offline(open_in, tabs, tmp_path):
    from tests.browser.studio import Studio

    studio = open_in("served", "stack", "#/view=map")
    studio.settled("map")
    with studio.page.expect_download() as coming:
        studio.root.get_by_role("button", name="Page", exact=True).click()
    file = tmp_path / "taken.html"
    file.write_bytes(coming.value.path().read_bytes())
    tab = tabs.new()
    tab.page.goto(file.as_uri())
    Studio(tab, "page").settled("map")
