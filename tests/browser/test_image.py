"""Patches over a picture, in every host."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.browser.conftest import HOSTS


@pytest.mark.parametrize("kind", HOSTS)
def test_the_image_view_lays_a_row_over_the_patches(kind, open_in, trace_of):
    studio = open_in(kind, "picture")
    studio.open("image")
    studio.place(1, 2, query=0)
    wanted = trace_of("picture").layers[1].weights[0, 2, 0].numpy()
    shown = studio.eventually(
        lambda: studio.probe_all("image", "weight", [[patch] for patch in range(15)]),
        lambda found: None not in found and np.allclose(found, wanted[1:], atol=1e-6),
    )
    assert_allclose(shown, wanted[1:], rtol=0, atol=1e-6)
    studio.shot("image")


@pytest.mark.parametrize("kind", HOSTS)
def test_a_window_is_not_stretched_over_the_picture_but_the_whole_is_laid_over_it(kind, open_in, trace_of):
    layers = trace_of("windows").layers
    assert [tuple(layer.weights.shape[i] for i in (0, 2)) for layer in layers] == [(4, 9), (1, 36)]
    studio = open_in(kind, "windows")
    view = studio.open("image")
    studio.eventually(lambda: view.inner_text(), lambda words: "not placed on the image yet" in words)
    assert view.locator("canvas").count() == 0
    studio.shot("image-windows")
    studio.place(1, 2, query=7)
    wanted = layers[1].weights[0, 2, 7].numpy()
    studio.eventually(
        lambda: studio.probe_all("image", "weight", [[patch] for patch in range(36)]),
        lambda found: None not in found and np.allclose(found, wanted, atol=1e-6),
    )
