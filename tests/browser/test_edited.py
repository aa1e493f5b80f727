"""A trace of an edited model says so in every view of every host."""

import pytest

from tests.browser.conftest import HOSTS

EDITS = "mute('layers.0', heads 1), block(['layers.1', 'layers.2'], query 3, key 0)"


@pytest.mark.parametrize("kind", HOSTS)
def test_every_view_says_that_the_model_was_edited_and_how(kind, open_in, trace_of):
    assert ", ".join(trace_of("edited").edits) == EDITS
    studio = open_in(kind, "edited")
    for view in ("map", "heads", "model", "numbers", "flow", "edit", "compare"):
        studio.open(view)
        assert studio.root.locator(".stage .edited").inner_text() == f"The model was edited: {EDITS}"
    studio.open("map")
    studio.settled("map")
    studio.shot("edited-trace")
    assert "mute('layers.0', heads 1)" in studio.root.locator(".panel").inner_text()
    studio.root.get_by_role("button", name="中文").click()
    studio.eventually(lambda: studio.root.locator(".stage .edited").inner_text(), lambda words: "模型已被编辑" in words)


def test_a_trace_of_the_model_as_it_is_says_nothing_of_edits(open_in):
    studio = open_in("page", "other")
    studio.open("map")
    assert studio.root.locator(".stage .edited").count() == 0
