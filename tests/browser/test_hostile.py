"""Tokens that would like to be more than text: nothing runs, and each is shown as itself, in all views and hosts."""

import pytest

from tests.browser.conftest import HOSTS
from tests.browser.examples import HOSTILE

VIEWS = ("map", "heads", "model", "numbers", "flow", "compare", "edit")
READABLE = {0: "</script>", 1: "<img src=x", 2: "<!--<script>", 3: "<svg onload", 4: "${alert(5)}", 5: "javascript:"}


@pytest.mark.parametrize("kind", HOSTS)
def test_hostile_tokens_stay_text_in_every_view(kind, open_in, folder):
    studio = open_in(kind, "hostile")
    for view in VIEWS:
        studio.open(view)
        if view == "compare":
            studio.root.locator(".comparing input[type=file]").set_input_files(folder / "hostile.trace")
            studio.eventually(lambda: studio.probe("compare", "b", 3, 1) is not None)
        if "settled" in studio.probes(view):
            studio.settled(view)
        box = studio.view(view).bounding_box()
        for share in (0.3, 0.5, 0.7):  # tooltips hold tokens too
            studio.page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] * share)
        studio.page.mouse.move(2, 2)
        studio.shot(f"hostile-{view}")
        made = studio.root.evaluate(
            "element => ['script', 'img[src=x]', 'svg[onload]', 'iframe', 'b'].map(what => "
            "[...element.querySelectorAll(what)].filter(one => /middle|alert|pwned/.test(one.outerHTML)).length)"
        )
        assert made == [0, 0, 0, 0, 0], view
    assert studio.page.evaluate("window.__pwned ?? null") is None


@pytest.mark.parametrize("kind", HOSTS)
def test_hostile_tokens_are_shown_as_themselves(kind, open_in):
    studio = open_in(kind, "hostile")
    studio.open("map")
    panel = studio.root.locator("aside.panel")
    for token, part in READABLE.items():
        studio.place(0, 0, query=token, key=token)
        name = panel.locator("h2 bdi").first
        studio.eventually(lambda part=part, name=name: name.count() and part in (name.get_attribute("title") or ""))
    for token in (6, 7, 8):  # line separators, direction marks, NUL: as marks, since they cannot be seen
        studio.place(0, 0, query=token)
        shown = studio.eventually(panel.locator("h2 bdi").first.inner_text)
        assert not set(shown) & {"\u2028", "\u2029", "\u202e", "\x00"}, ascii(shown)
    studio.place(0, 0, query=len(HOSTILE) - 1)
    name = studio.eventually(panel.locator("h2 bdi").first.inner_text, lambda text: text.startswith("x"))
    assert len(name) < 200
    assert "…" in name
    assert studio.root.evaluate("element => element.scrollWidth <= element.clientWidth + 1")
    studio.shot("hostile-panel")


def test_hostile_tokens_stay_text_in_a_picture_taken_along(open_in):
    studio = open_in("page", "hostile")
    for view in ("map", "heads", "flow"):
        studio.open(view)
        studio.place(0, 0, query=0, key=1)
        ready = {"flow": "visible", "heads": "lines"}.get(view, "settled")
        studio.eventually(lambda view=view, ready=ready: studio.probe(view, ready), lambda found: found != [0, -1])
        with studio.page.expect_download() as coming:
            studio.root.get_by_role("button", name="SVG", exact=True).click()
        text = coming.value.path().read_text(encoding="utf-8")
        parsed = studio.page.evaluate(
            """text => { const found = new DOMParser().parseFromString(text, "image/svg+xml");
                 return [found.querySelector("parsererror")?.textContent ?? "",
                         found.querySelectorAll("script, img, iframe, b, [onload], [onerror]").length]; }""",
            text,
        )
        assert parsed == ["", 0], view
