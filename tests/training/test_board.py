"""What TensorBoard would draw is what the history says, also after a crash."""

import sys

import pytest

from regard.errors import ConfigError
from regard.training.fit import Event, fit
from regard.training.run import RunFolder
from tests.training.toy import Toy, ToySettings


class Crash(BaseException):
    """As sudden as it gets inside one process."""


def drawn(folder) -> dict[str, list[tuple[int, float]]]:
    """Every curve, as TensorBoard's own reader sees it."""
    reading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = reading.EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0})
    found.Reload()
    return {tag: [(one.step, one.value) for one in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def told(folder) -> dict[str, list[tuple[int, float]]]:
    """The same curves from the history."""
    found: dict[str, list[tuple[int, float]]] = {}
    for line in RunFolder(folder).history():
        group, facts = ("validation", line["validation"]) if "validation" in line else ("training", line)
        for name in facts.keys() - {"step", "epoch"}:
            found.setdefault(f"{group}/{name}", []).append((line["step"], pytest.approx(facts[name], rel=1e-6)))
    return found


def test_every_number_of_the_history_is_drawn_once(tmp_path):
    pytest.importorskip("tensorboard")
    fit(Toy(), ToySettings(tensorboard=True), tmp_path / "run")
    wanted = told(tmp_path / "run")
    assert wanted.keys() == {"training/loss", "training/nll", "training/lr", "training/norm", "validation/loss"}
    assert [step for step, _ in wanted["training/loss"]] == [1, 2, 3, 5, 6, 9, 10, 12, 15, 18, 20, 21, 23]
    assert drawn(tmp_path / "run") == wanted


@pytest.mark.parametrize("moment", [2, 10, 22])
def test_a_run_that_goes_on_draws_no_point_twice(moment, tmp_path):
    pytest.importorskip("tensorboard")

    def tell(event: Event) -> None:
        if event.kind == "step" and event.step == moment:
            raise Crash

    settings = ToySettings(tensorboard=True, log_every=1)
    with pytest.raises(Crash):
        fit(Toy(), settings, tmp_path / "run", tell=tell)
    fit(Toy(), settings, tmp_path / "run", resume=True)
    assert len(drawn(tmp_path / "run")["training/loss"]) == 23
    assert drawn(tmp_path / "run") == told(tmp_path / "run")


def test_files_of_a_run_that_goes_on_at_once_are_read_in_the_order_of_their_making(tmp_path):
    """Their names begin with a second; within one, the tenth would come before the ninth."""
    pytest.importorskip("tensorboard")
    settings = ToySettings(tensorboard=True, steps=2)
    for _ in range(3):
        fit(Toy(), settings, tmp_path / "run", resume=(tmp_path / "run").exists())
    names = [path.name for path in sorted((tmp_path / "run" / "tensorboard").iterdir())]
    seconds = [name.split(".")[3] for name in names]
    assert len(set(seconds)) == len(seconds) == 3


def test_nothing_is_drawn_unless_wanted(tmp_path):
    fit(Toy(), ToySettings(steps=2), tmp_path / "run")
    assert not (tmp_path / "run" / "tensorboard").exists()


def test_a_missing_extra_is_named_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
    with pytest.raises(ConfigError, match=r"tensorboard is not installed; pip install 'regard\[train\]'"):
        fit(Toy(), ToySettings(tensorboard=True), tmp_path / "run")
    assert not (tmp_path / "run").exists()
