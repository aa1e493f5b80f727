"""A map with more tokens than the screen has room for: pooled when whole, exact when near."""

import pytest
from numpy.testing import assert_allclose


@pytest.mark.parametrize("kind", ["page", "served"])
def test_a_long_map_is_pooled_and_its_corner_is_exact(kind, open_in, trace_of):
    studio = open_in(kind, "long", "#/view=map&layer=1&head=1")
    studio.settled("map")
    assert studio.probe("map", "level") >= 0
    studio.shot("long")
    studio.page.evaluate("location.hash = '#/view=map&layer=1&head=1&zoom=670,670,700,700'")
    studio.eventually(lambda: studio.probe("map", "zoom"), lambda zoom: zoom and zoom["left"] > 600)
    studio.settled("map")
    places = [[query, key] for query in range(680, 700, 3) for key in range(675, 700, 4) if key <= query]
    wanted = trace_of("long").layers[1].weights[0, 1].dense().numpy()
    shown = studio.eventually(
        lambda: studio.probe_all("map", "weight", places), lambda found: all(one is not None for one in found)
    )
    assert_allclose(shown, [wanted[query, key] for query, key in places], rtol=0, atol=1e-6)
    studio.shot("long-near")


def test_the_page_of_a_long_text_does_not_grow_with_it(open_in):
    counts = {}
    for name in ("stack", "long"):
        studio = open_in("page", name, "#/view=heads")
        studio.eventually(lambda studio=studio: studio.probe("heads", "visible")[1] >= 0)
        counts[name] = studio.root.evaluate("element => element.querySelectorAll('*').length")
    assert counts["long"] < counts["stack"] + 400
