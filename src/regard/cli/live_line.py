"""The live line of a training run in a terminal: it fits any width, and says the most important things first."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.durations import format_clock, format_rate
from regard.training.event import Event, Tell

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

BARS = (40, 30, 20, 10)  # columns of the bar: few sizes, so that it does not tremble with every digit
STYLES = {"━+╸?": "green", "─+": "dim", "validating [0-9:]+": "yellow", r"\(best\)": "green"}
PER_SECOND = 4  # how often it is drawn again


class LiveLine:
    """What is known of a run now: its step, loss, scores, speed and the time that is left.

    >>> line = LiveLine(now=lambda: 0.0)
    >>> begin = {"steps": 5200, "score": "bleu", "best": 22.134, "best_step": 800}
    >>> line.hear(Event("begin", 1000, begin))
    >>> line.hear(Event("validation", 1200, {"scores": {"bleu": 21.3}, "best": 22.134, "best_step": 800}))
    >>> for width in (50, 40, 30, 20):
    ...     print(line.compose(width))
    1200/5200 ━━────────  bleu 21.3, best 22.13 at 800
    1200/5200  bleu 21.3, best 22.13 at 800
    1200/5200 best bleu 22.1@800
    1200/5200
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.step = self.steps = self.best_step = self.last_step = 0
        self.loss: float | None = None
        self.score = ""
        self.last: float | None = None  # score that decides, and the best of it
        self.best: float | None = None
        self.speed: Any = None
        self.measured = 0.0  # when the speed was
        self.validating: float | None = None  # since when
        self.is_over = False

    def hear(self, event: Event) -> None:
        """Take in what a run tells."""
        facts = event.facts
        self.step = event.step
        if event.kind == "begin":
            self.steps, self.score = facts["steps"], facts["score"]
            self.best, self.best_step = facts["best"], facts["best_step"]
        elif event.kind in ("step", "log"):
            self.loss, self.speed, self.measured = facts["loss"], facts["speed"], self.now()
        elif event.kind == "validating":
            self.validating = self.now()
        elif event.kind == "validation":
            self.last, self.last_step = facts["scores"][self.score], event.step
            self.best, self.best_step = facts["best"], facts["best_step"]
        if event.kind not in ("validating", "notice"):
            self.validating = None
        self.is_over = event.kind == "end"

    def compose(self, width: int) -> str:
        """The fullest line of at most `width` columns: the bar goes first, then words, then what matters least."""
        lines = self.list_lines()
        room = width - len(lines[0]) - 1
        bar = next((size for size in BARS if size <= room), 0)
        if bar and self.steps:
            return lines[0].replace(self.count(), f"{self.count()} {self.draw_bar(bar)}", 1)
        return next((line for line in lines if len(line) <= width), lines[-1][: max(width, 0)])

    def list_lines(self) -> list[str]:
        """The same line, ever shorter."""
        count, loss, clock = self.count(), self.describe_loss(), self.describe_left()
        tokens, steps = self.describe_speed("tokens_per_second"), self.describe_speed("updates_per_second")
        scores, (last, best) = ", ".join(filter(None, self.list_scores(4, " at "))), self.list_scores(3, "@")
        one = best.replace("best ", f"best {self.score} ", 1) if last and best else best or last
        left, speed, per_step = clock and f"{clock} left", tokens and f"{tokens} tok/s", steps and f"{steps} steps/s"
        full = [count, loss, scores, tokens and f"{tokens} tokens/s", per_step, left]
        shorter = (
            [count, loss, last, best, speed, per_step, left],
            [count, loss, last, best, speed, per_step, clock],
            [count, loss, last, best, speed, clock],
            [count, loss, one, speed, clock],
            [count, loss, one, clock],
            [count, loss, clock],
            [count, loss],
            [count],
        )
        return ["  ".join(filter(None, full)), *(" ".join(filter(None, words)) for words in shorter)]

    def count(self) -> str:
        return f"{self.step}/{self.steps}" if self.steps else "preparing"

    def describe_loss(self) -> str:
        """The loss; while a validation goes on, for how long it has."""
        if self.validating is not None:
            return f"validating {format_clock(self.now() - self.validating)}"
        return "" if self.loss is None else f"loss {self.loss:.4g}"

    def list_scores(self, digits: int, at: str) -> tuple[str, str]:
        """The last score, and the best one with its step; "" for what there is not."""
        if self.best is None:
            return "", ""
        last = "" if self.last is None else f"{self.score} {self.last:.{digits}g}"
        if last and self.last_step == self.best_step:
            return f"{last} (best)", ""
        name = "" if last else f"{self.score} "  # of a run that goes on, the last one is not known
        return last, f"best {name}{self.best:.{digits}g}{at}{self.best_step}"

    def describe_speed(self, name: str) -> str:
        rate = getattr(self.speed, name, None)
        return "" if rate is None else format_rate(rate)

    def describe_left(self) -> str:
        """The time that is left, which goes on shrinking between the moments when it is measured."""
        left = getattr(self.speed, "seconds_left", None)
        return "" if left is None or self.is_over else format_clock(left - (self.now() - self.measured))

    def draw_bar(self, width: int) -> str:
        done = int(2 * width * min(self.step / self.steps, 1))  # in half columns
        return ("━" * (done // 2) + "╸" * (done % 2)).ljust(width, "─")

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from rich.text import Text

        text = Text(self.compose(options.max_width), no_wrap=True, overflow="crop", end="")
        for pattern, style in STYLES.items():
            text.highlight_regex(pattern, style)
        yield text


@contextmanager
def show_live_line(
    say_start: Callable[[Event, Path], str], folder: Path, console: "Console | None" = None
) -> Iterator[Tell]:
    """Draw the line again and again while the block runs; what stays is written above it."""
    from rich.console import Console
    from rich.live import Live

    line, screen = LiveLine(), console or Console(stderr=True)

    def say(text: str) -> None:
        screen.print(text, markup=False, highlight=False, soft_wrap=True)

    with Live(line, console=screen, refresh_per_second=PER_SECOND):

        def tell(event: Event) -> None:
            line.hear(event)
            if event.kind == "begin":
                say(say_start(event, folder))
            elif event.kind == "notice":
                say(f"regard: {event.facts['text']}")
            elif event.kind == "validation":
                say(describe_validation(event, line.steps))

        yield tell


def describe_validation(event: Event, steps: int) -> str:
    """Every score of a validation, and whether it is the best so far.

    >>> facts = {"scores": {"loss": 1.93211, "bleu": 21.3}, "better": False, "best": 22.1, "best_step": 800}
    >>> describe_validation(Event("validation", 1200, facts), 5200)
    'step 1200/5200  validation  loss 1.932  bleu 21.3  (best 22.1 at step 800)'
    """
    facts = event.facts
    scores = "  ".join(f"{key} {value:.4g}" for key, value in facts["scores"].items())
    best = "(best)" if facts["better"] else f"(best {facts['best']:.4g} at step {facts['best_step']})"
    return f"step {event.step}/{steps}  validation  {scores}  {best}"
