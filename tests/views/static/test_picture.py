"""Figures show themselves at the end of a notebook's cell: a notebook is run, and its outputs are looked at."""

import base64
import io
import json

import numpy as np
import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

SETUP = """
import torch, regard
from regard.views.static.figure import heatmap
torch.manual_seed(0)
layer = regard.MultiHead(8, heads=2)
with torch.no_grad(), regard.watch(layer, ["<b>a</b>", "b", "猫", "d"]) as trace:
    _ = layer(torch.randn(1, 4, 8))
"""
SHOWN = [
    "trace.figure()",
    "trace.figure(0, 1)",
    "trace[0].head(0).draw()",
    "regard.causal().draw(4, 4)",
    "heatmap([[0.1, 0.9, 0.3], [0.5, 0.5, 0.2]])",
]


def executed(*cells):
    """The outputs of each cell, after really running them in a kernel."""
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(made, timeout=300, kernel_name="python3").execute()
    return made, [cell.outputs for cell in made.cells]


@pytest.mark.parametrize("backend", ["", "%matplotlib inline\n"], ids=["no backend", "inline"])
def test_a_figure_at_the_end_of_a_cell_is_a_picture_once(backend):
    from PIL import Image

    _, (_, *outputs) = executed(backend + SETUP, *SHOWN)
    assert len(outputs) == len(SHOWN)
    for cell, found in zip(SHOWN, outputs):
        assert len(found) == 1, (cell, found)
        pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(found[0].data["image/png"]))).convert("L"))
        assert pixels.min() < 60, cell  # ink on paper
        assert pixels.max() > 250, cell
        if not backend:
            about = found[0].metadata["image/png"]
            assert about["width"] / about["height"] == pytest.approx(pixels.shape[1] / pixels.shape[0], rel=0.02)


def test_an_exported_notebook_shows_the_figure():
    exporters = pytest.importorskip("nbconvert.exporters")
    made, _ = executed(SETUP, SHOWN[0])
    text, _ = exporters.HTMLExporter().from_notebook_node(made)
    assert "data:image/png;base64," in text
    assert json.loads(nbformat.writes(made))["cells"][1]["outputs"][0]["data"]["image/png"]
