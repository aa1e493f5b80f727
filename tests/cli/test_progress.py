"""What `regard train` shows: one live line of any width in a terminal, plain lines elsewhere."""

import io
import re
from itertools import pairwise

import pytest
from rich.console import Console

from regard.cli.live_line import LiveLine, show_live_line
from regard.cli.progress import describe_start, report_progress
from regard.training.clock import Speed
from regard.training.event import Event

BEGIN = {"parameters": 1234567, "examples": 890, "left_out": 0, "why_left_out": "too long", "device": "cpu"}
BEGIN |= {"steps": 52000, "score": "bleu", "best": None, "best_step": 0}
SPEED = Speed(9.0, 5.0, 3.0, 40, 900, 8213.4, 3.1416, 3725.0)
STEP = Event("step", 12400, {"loss": 2.41312, "lr": 1e-3, "speed": SPEED})
WORSE = Event(
    "validation",
    12000,
    {"scores": {"loss": 1.9, "bleu": 21.3402}, "better": False, "best": 22.1311, "best_step": 11500},
)


def line_after(*events: Event) -> LiveLine:
    line = LiveLine(now=lambda: 50.0)
    for event in (Event("begin", 0, BEGIN), *events):
        line.hear(event)
    return line


def test_the_line_fits_eighty_columns_with_everything_on_it():
    said = line_after(WORSE, STEP).compose(80)
    assert said == "12400/52000 loss 2.413 bleu 21.3 best 22.1@11500 8.2k tok/s 3.14 steps/s 1:02:05"
    assert len(said) <= 80


def test_the_start_says_how_many_examples_are_left_out_and_why(tmp_path):
    said = describe_start(Event("begin", 0, BEGIN | {"left_out": 2001}), tmp_path)
    assert "890 examples (2,001 left out: too long), 52000 steps" in said


def test_a_wide_terminal_gets_words_and_a_bar():
    said = line_after(WORSE, STEP).compose(150)
    scores, speed = r"bleu 21\.34, best 22\.13 at 11500", r"8\.2k tokens/s  3\.14 steps/s  1:02:05 left"
    assert re.fullmatch(rf"12400/52000 ━+╸?─+  loss 2\.413  {scores}  {speed}", said)
    bar = re.search("[━╸─]+", said)[0]
    assert len(bar) in (10, 20, 30, 40)
    assert bar.count("━") == int(12400 / 52000 * len(bar))


@pytest.mark.parametrize("events", [(), (STEP,), (WORSE, STEP), (WORSE, STEP, Event("validating", 12400, {}))])
def test_the_line_fits_every_width_and_only_loses_words_as_it_gets_narrower(events):
    line = line_after(*events)
    said = {width: line.compose(width) for width in range(1, 200)}
    assert all(len(one) <= width for width, one in said.items())
    numbers = {width: set(re.findall(r"\d[\d.:]*", one)) for width, one in said.items()}
    assert all(len(numbers[a]) <= len(numbers[b]) for a, b in pairwise(range(12, 200)))
    assert all(one.startswith(f"{line.step}/52000") for width, one in said.items() if width >= 11)


def test_a_validation_that_goes_on_is_told_with_its_time():
    line = line_after(WORSE, STEP)
    line.hear(Event("validating", 12400, {}))
    line.now = lambda: 142.0
    said = line.compose(120)
    assert "validating 1:32" in said
    assert "loss" not in said
    assert "1:00:33 left" in said  # which goes on shrinking
    line.hear(Event("notice", 12400, {"text": "something"}))
    assert "validating" in line.compose(120)
    line.hear(Event("validation", 12400, WORSE.facts))
    assert "validating" not in line.compose(120)


def test_the_best_is_told_once_where_it_is_the_last_and_alone_where_a_run_goes_on():
    best = Event("validation", 9, {"scores": {"bleu": 3.0}, "better": True, "best": 3.0, "best_step": 9})
    assert "bleu 3 (best)" in line_after(best).compose(200)
    resumed = LiveLine()
    resumed.hear(Event("begin", 70, BEGIN | {"best": 4.5, "best_step": 60}))
    assert "best bleu 4.5 at 60" in resumed.compose(200)


def test_before_it_begins_it_says_that_it_prepares():
    assert LiveLine().compose(80) == "preparing"


@pytest.mark.parametrize("columns", [24, 80, 132])
def test_a_terminal_shows_one_line_and_what_stays_above_it(columns, tmp_path):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=columns, height=20, color_system=None)
    with show_live_line(describe_start, tmp_path, console) as tell:
        for event in (Event("begin", 0, BEGIN), STEP, Event("notice", 12400, {"text": "a note"}), WORSE):
            tell(event)
        tell(Event("end", 12400, {}))
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue()).replace("\r", "\n")
    lines = [line for line in plain.splitlines() if line.startswith("12")]
    assert lines
    assert all(len(line) <= columns for line in lines)
    assert "1,234,567 parameters, 890 examples, 52000 steps, in " in plain
    assert "regard: a note" in plain
    assert "step 12000/52000  validation  loss 1.9  bleu 21.34  (best 22.13 at step 11500)" in plain


@pytest.mark.parametrize(
    ("tty", "term", "live"), [(True, "xterm", True), (True, "dumb", False), (False, "xterm", False)]
)
def test_only_a_terminal_that_can_gets_a_live_line(tty, term, live, monkeypatch, tmp_path):
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: tty, raising=False)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", term)
    with report_progress(False, tmp_path) as tell:
        tell(Event("begin", 0, BEGIN))
        tell(Event("log", 12400, STEP.facts))
    said = stream.getvalue()
    assert ("\x1b" in said) == live
    wanted = "step 12400/52000  loss 2.4131  lr 1.00e-03  8,213 tokens/s  3.14 steps/s  1:02:05 left\n"
    assert (wanted in said) != live
