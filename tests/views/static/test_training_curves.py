"""The curves of runs as a figure: what is drawn is what the runs have written."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from regard.errors import DataError
from regard.training.manifest import seal
from regard.training.run import FORMAT
from regard.training.status import RunStatus, read_status
from regard.views.static.figure_theme import DARK, LIGHT
from regard.views.static.training_curves import MOST_RUNS, draw_curves


def written(folder: Path, task: str = "translate", last: int = 60, **settings) -> RunStatus:
    """A run with a history of its own: two scores, of which the second decides."""
    folder.mkdir(parents=True)
    settings = {"steps": 90, "lr": 0.001, "width": 64} | settings
    (folder / "run.json").write_bytes(seal({"format": FORMAT, "task": task, "settings": settings}))
    draw = np.random.default_rng(len(folder.name))
    lines = []
    for step in range(10, last + 1, 10):
        lines.append({"step": step, "loss": draw.normal(5), "lr": settings["lr"] * step / 90})
        if step % 20 == 0:
            lines.append({"step": step, "validation": {"loss": draw.normal(3), "bleu": draw.normal(20)}})
    start = {"step": 0, "start": "", "score": "bleu", "more": True, "settings": {}}
    (folder / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "timing.jsonl").write_text(json.dumps(start) + "\n")
    return read_status(folder)


@pytest.fixture
def runs(tmp_path):
    return [
        written(tmp_path / "one"),
        written(tmp_path / "二", last=80, lr=0.002),
        written(tmp_path / "three-", width=128, data="a" * 200),
    ]


def drawn(axes) -> list[list[tuple[float, float]]]:
    """Every line with more than one point."""
    return [list(zip(*line.get_data())) for line in axes.lines if len(line.get_xdata()) > 1]


def titles(figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes if axes.axison]


def test_one_run_is_drawn_with_loss_scores_and_learning_rate_and_its_best_is_marked(runs):
    (run, *_) = runs
    figure = draw_curves([run])
    assert titles(figure) == ["training loss", "validation loss", "validation bleu", "learning rate"]
    loss, _, bleu, rate = figure.axes
    assert drawn(loss) == [run.curves.losses]
    assert drawn(bleu) == [run.curves.scores["bleu"]]
    assert drawn(rate) == [run.curves.lrs]
    best = max(run.curves.scores["bleu"], key=lambda point: point[1])
    assert [next(zip(*line.get_data())) for line in bleu.lines if len(line.get_xdata()) == 1] == [best]
    assert bleu.get_title(loc="right") == f"best {best[1]:.4g} at step {best[0]}"
    assert len({axes.get_xlim() for axes in figure.axes}) == 1
    assert [text.get_text() for text in figure.texts] == ["one: translate, stopped, step 60 of 90"]


def test_several_runs_lie_over_each_other_with_names_and_a_table_of_what_differs(runs):
    figure = draw_curves(runs)
    assert drawn(figure.axes[0]) == [run.curves.losses for run in runs]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["one", "二", "three-"]
    looks = [(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines[:3]]
    assert len({colour for colour, _ in looks}) == len({style for _, style in looks}) == 3
    cells = figure.axes[-1].tables[0].get_celld()
    rows = [[cells[i, j].get_text().get_text() for j in range(4)] for i in range(max(i for i, _ in cells) + 1)]
    assert [row[0] for row in rows] == ["", "best bleu", "at step", "lr", "width", "data"]
    assert rows[3] == ["lr", "0.001", "0.002", "0.001"]
    assert rows[4] == ["width", "64", "64", "128"]
    assert rows[5][1:3] == ["–", "–"]
    assert rows[1][1:] == [f"{run.best.value:.4g}" for run in runs]


def luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    line = [x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in to_rgb(colour)]
    return float(np.dot(line, (0.2126, 0.7152, 0.0722)))


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_text_and_lines_stand_out_from_their_ground(theme):
    def contrast(one: str) -> float:
        light, dark = sorted((luminance(one), luminance(theme.ground)), reverse=True)
        return (light + 0.05) / (dark + 0.05)

    assert contrast(theme.ink) > 7
    assert contrast(theme.pale) > 4.5
    assert all(contrast(line) > 3 for line in theme.lines)
    assert len(theme.lines) == MOST_RUNS


def test_colours_are_those_of_the_explorer(repository):
    paint = repository / "web/src/paint"
    heads = re.findall(r"_HEADS = \[(.*?)\]", (paint / "color.ts").read_text(), re.DOTALL)
    themes = re.findall(r"export const \w+: Theme = \{(.*?)\};", (paint / "theme.ts").read_text(), re.DOTALL)
    for ours, lines, theme in zip((LIGHT, DARK), heads, themes, strict=True):
        assert list(ours.lines) == re.findall("#[0-9a-f]{6}", lines)[:MOST_RUNS]
        theirs = dict(re.findall(r'(\w+): "(#[0-9a-f]{6})"', theme))
        assert (ours.ground, ours.ink, ours.pale, ours.rule) == tuple(
            theirs[name] for name in ("ground", "ink", "pale", "line")
        )


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_it_is_written_the_same_each_time(ending, dark, runs, tmp_path):
    path, again = tmp_path / f"curves.{ending}", tmp_path / f"again.{ending}"
    draw_curves(runs, dark=dark, to=path)
    draw_curves(runs, dark=dark, to=again)
    assert path.read_bytes() == again.read_bytes()
    if ending == "svg":
        text = path.read_text()
        assert "二" in text
        assert (DARK if dark else LIGHT).ground in text


def test_nothing_to_draw_and_too_much_are_one_sentence(tmp_path, runs):
    empty = written(tmp_path / "empty", last=0)
    with pytest.raises(DataError, match="there is no curve; wait for the first step"):
        draw_curves([empty])
    with pytest.raises(DataError, match="9 runs are too many for one figure"):
        draw_curves([*runs, *runs, *runs])
    assert titles(draw_curves([empty, runs[0]]))[0] == "training loss"


def test_a_run_of_other_scores_has_panels_of_its_own(tmp_path, runs):
    other = written(tmp_path / "other", task="copy")
    lines = (other.folder / "history.jsonl").read_text().replace("bleu", "exact")
    (other.folder / "history.jsonl").write_text(lines)
    figure = draw_curves([runs[0], read_status(other.folder)])
    assert titles(figure)[1:-1] == ["validation loss", "validation bleu", "validation exact"]


def test_a_hundred_differences_are_counted_and_not_all_shown(tmp_path):
    one = written(tmp_path / "one", **{f"key{i}": 0 for i in range(100)})
    two = written(tmp_path / "two", **{f"key{i}": 1 for i in range(100)})
    cells = draw_curves([one, two]).axes[-1].tables[0].get_celld()
    assert cells[30, 0].get_text().get_text() == "… 73 more settings"
    assert (31, 0) not in cells
