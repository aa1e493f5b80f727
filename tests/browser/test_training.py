"""How a map grew over the steps of a training, served."""

import json

import numpy as np
import pytest

from regard.trace.file import load
from tests.browser.served import Server
from tests.browser.studio import Studio

STEPS = {"steps": 4, "eval_every": 2, "save_every": 2}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A very small model that learns to turn a row of symbols round, looked at a few times."""
    from regard.tasks import task_named
    from regard.training.fit import fit

    folder = tmp_path_factory.mktemp("runs") / "reverse"
    task = task_named("reverse")
    sizes = {"examples": 60, "validation_size": 6, "most": 5, "width": 8, "heads": 2, "layers": 1, "hidden": 9}
    assert fit(task, task.settings(**sizes, **STEPS, warmup_steps=1), folder).code == 0
    return folder


def test_a_training_can_be_walked_through_step_by_step(tabs, run, folder):
    server = Server(folder, str(run))
    try:
        (card,) = server.get("/api/trainings")
        assert card["steps"] == [0, 1, 2, 4], json.dumps(card)
        tab = tabs.new(server.home)
        tab.page.goto(server.address("stack"))
        studio = Studio(tab, "served")
        studio.open("training")
        assert studio.eventually(lambda: studio.probe("training", "steps")) == [0, 1, 2, 4]
        for step, move in ((4, None), (2, "back"), (4, "forward")):
            if move:
                studio.view("training").locator(f'[data-do="{move}"]').click()
            studio.eventually(lambda: studio.probe("training", "step"), lambda found, step=step: found == step)
            studio.settled("training")
            shown = studio.eventually(
                lambda: studio.probe_all("training", "weight", [[0, 0], [1, 0], [0, 1]]),
                lambda found: found[0] is not None,
            )
            files = [one for one in run.rglob("*.trace") if one.parent.name.rsplit("-", 1)[-1].lstrip("0") == str(step)]
            fitting = [
                layer.weights[0, head].dense().numpy()
                for file in files
                for layer in load(file).layers
                for head in range(layer.heads)
            ]
            assert fitting
            assert any(
                all(
                    np.isclose(weights[place], one or 0, atol=1e-6)
                    for place, one in zip([(0, 0), (1, 0), (0, 1)], shown)
                )
                for weights in fitting
                if weights.shape[0] > 1 and weights.shape[1] > 1
            )
        studio.shot("training")
    finally:
        server.stop()
