"""What `regard train` says while it trains: a live line in a terminal, plain lines elsewhere."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from regard.cli.durations import format_clock
from regard.cli.live_line import describe_validation, show_live_line
from regard.training.clock import Speed
from regard.training.event import Event, Tell


@contextmanager
def report_progress(quiet: bool, folder: Path) -> Iterator[Tell]:
    """Listen to a training run: a live line in a terminal, plain lines elsewhere."""
    if quiet:
        yield lambda event: None
    elif sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        with show_live_line(describe_start, folder) as tell:
            yield tell
    else:
        yield ProgressLines(folder)


class ProgressLines:
    """Plain lines, for a file or another program."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.steps = folder, 0

    def __call__(self, event: Event) -> None:
        facts = event.facts
        if event.kind == "begin":
            self.steps = int(facts["steps"])
            self.say(describe_start(event, self.folder))
        elif event.kind == "notice":
            self.say(f"regard: {facts['text']}")
        elif event.kind == "log":
            speed = describe_speed(facts["speed"])
            self.say(f"step {event.step}/{self.steps}  loss {facts['loss']:.4f}  lr {facts['lr']:.2e}{speed}")
        elif event.kind == "validating":
            self.say(f"step {event.step}/{self.steps}  validating")
        elif event.kind == "validation":
            self.say(describe_validation(event, self.steps))

    def say(self, text: str) -> None:
        typer.echo(text, err=True)


def describe_speed(speed: Speed) -> str:
    """Tokens and steps per second of training, and the time left; nothing where this process made no step yet."""
    if speed.tokens_per_second is None or speed.seconds_left is None:
        return ""
    rates = f"  {speed.tokens_per_second:,.0f} tokens/s  {speed.updates_per_second:.2f} steps/s"
    return f"{rates}  {format_clock(speed.seconds_left)} left"


def describe_start(event: Event, folder: Path) -> str:
    """What begins: how large the model is, how much there is to learn from, and where it computes."""
    facts = event.facts
    left = f" ({facts['left_out']:,} left out: {facts['why_left_out']})" if facts["left_out"] else ""
    on = "" if facts["device"] == "cpu" else f" on {facts['device']}"
    after = f", going on after step {event.step}" if event.step else ""
    said = f"{facts['parameters']:,} parameters, {facts['examples']:,} examples{left}, {facts['steps']} steps{on}"
    return f"{said}{after}, in {folder}"
