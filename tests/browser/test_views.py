"""Every view in every host: the numbers as drawn are the numbers of the trace."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.browser.examples import HEADS, LAYERS, SENTENCE

N = len(SENTENCE)
CLOSE = {"rtol": 0, "atol": 1e-6}
CAUSAL = np.tril(np.ones((N, N), dtype=bool))


@pytest.fixture
def trace(trace_of):
    return trace_of("stack")


def weights(trace, layer, head):
    return trace.layers[layer].weights[0, head].dense().numpy()


def as_array(rows):
    """Numbers, NaN where the view drew none."""
    return np.array([[np.nan if one is None else one for one in row] for row in rows])


@pytest.mark.parametrize(("layer", "head"), [(0, 0), (2, 3)])
def test_the_map_shows_every_weight_and_hatches_what_is_hidden(studio, trace, layer, head):
    studio.open("map")
    studio.place(layer, head)
    studio.settled("map")
    shown = studio.eventually(
        lambda: as_array(studio.grid("map", "weight", N, N)),
        lambda found: np.allclose(np.nan_to_num(found), weights(trace, layer, head), atol=1e-6),
    )
    assert_allclose(shown[CAUSAL], weights(trace, layer, head)[CAUSAL], **CLOSE)
    assert np.isnan(shown[~CAUSAL]).all()
    studio.shot(f"map-{layer}-{head}")


def test_the_heads_view_draws_a_line_for_every_weight_above_the_threshold(studio, trace):
    studio.open("heads")
    studio.place(1, 2)
    studio.view("heads").get_by_role("slider").first.fill("30")  # of 100, squared
    wanted = {
        (query, key): weight
        for (query, key), weight in np.ndenumerate(weights(trace, 1, 2))
        if weight >= 0.09 and CAUSAL[query, key]
    }
    first, last = studio.eventually(lambda: studio.probe("heads", "visible"), lambda found: found[1] >= 0)
    seen = {place: weight for place, weight in wanted.items() if first <= place[0] <= last}
    assert len(seen) > N
    lines = studio.eventually(lambda: studio.probe("heads", "lines"), lambda found: len(found) == len(seen))
    for line in lines:
        assert line["head"] == 2
        assert_allclose(line["weight"], wanted[line["query"], line["key"]], **CLOSE)
    studio.shot("heads")


def test_the_model_view_has_all_heads_measured_and_sorted(studio, trace):
    studio.open("model")
    entropy = np.array([found.entropy[0].numpy() for found in trace.measures()])

    def measured():
        return studio.probe_all("model", "value", [[i, h, "entropy"] for i in range(LAYERS) for h in range(HEADS)])

    order = studio.view("model").get_by_role("combobox").first
    order.select_option("entropy")
    shown = studio.eventually(measured, lambda found: None not in found)
    assert_allclose(np.array(shown), entropy.ravel(), rtol=0, atol=1e-5)
    placed = studio.eventually(
        lambda: [(at["layer"], at["head"]) for at in studio.probe("model", "order")],
        lambda found: found == sorted(found, key=lambda at: -entropy[at]),  # the largest first
    )
    assert sorted(placed) == [(i, h) for i in range(LAYERS) for h in range(HEADS)]
    thumb = studio.eventually(lambda: studio.probe("model", "thumb", 2, 1), lambda found: len(found) > 0)
    assert_allclose(np.array(thumb), weights(trace, 2, 1).ravel(), **CLOSE)
    studio.shot("model")
    order.select_option("")


def test_the_numbers_view_shows_the_real_numbers_of_a_cell(studio, trace):
    studio.open("numbers")
    studio.place(1, 3, query=8, key=5)
    studio.eventually(lambda: studio.probe("numbers", "cell"), lambda found: found == [8, 5])
    layer = trace.layers[1]
    q, k, v = (x[0, 3].numpy() for x in (layer.q, layer.k, layer.v))
    width = q.shape[-1]
    for name, row in (("q", q[8]), ("k", k[5]), ("v", v[5]), ("product", q[8] * k[5])):
        shown = studio.probe_all("numbers", "value", [[name, channel] for channel in range(width)])
        assert_allclose(shown, row, rtol=1e-6, atol=1e-6, err_msg=name)
    dot = float(q[8] @ k[5])
    assert_allclose(studio.probe("numbers", "value", "dot"), dot, rtol=1e-5)
    assert_allclose(studio.probe("numbers", "value", "scale"), dot / np.sqrt(width), rtol=1e-5)
    assert_allclose(studio.probe("numbers", "value", "weight"), weights(trace, 1, 3)[8, 5], **CLOSE)
    mix = weights(trace, 1, 3)[8] @ v
    shown = studio.probe_all("numbers", "value", [["mix", channel] for channel in range(width)])
    assert_allclose(shown, mix, rtol=0, atol=1e-5)
    studio.shot("numbers")


def test_the_flow_view_shows_the_rollout_of_a_token(studio, trace):
    studio.open("flow")
    studio.place(2, 0, query=9)
    wanted = trace.flow(9).target.numpy()
    shown = studio.eventually(
        lambda: as_array(studio.grid("flow", "share", LAYERS + 1, N)),
        lambda found: np.allclose(found, wanted, atol=1e-5),
    )
    assert_allclose(shown, wanted, rtol=0, atol=1e-5)
    studio.shot("flow")


def test_the_compare_view_shows_both_and_the_difference(studio, trace, trace_of, folder):
    studio.open("compare")
    studio.place(1, 1)
    studio.root.locator(".comparing input[type=file]").set_input_files(folder / "other.trace")
    a, b = weights(trace, 1, 1), weights(trace_of("other"), 1, 1)
    studio.eventually(lambda: studio.probe("compare", "b", 3, 1) is not None)
    studio.settled("compare")
    for name, wanted in (("a", a), ("b", b), ("difference", b - a)):
        shown = studio.eventually(
            lambda name=name: as_array(studio.grid("compare", name, N, N)),
            lambda found: not np.isnan(found[CAUSAL]).any(),
        )
        error = min(np.abs(shown[CAUSAL] - sign * wanted[CAUSAL]).max() for sign in (1, -1))
        assert error < 1e-6, name
    studio.shot("compare")


def test_the_edit_view_says_where_it_needs_a_server(studio):
    studio.open("edit")
    if studio.kind != "served":
        assert len(" ".join(studio.view("edit").all_inner_texts())) > 20
    studio.shot("edit-without-model")
