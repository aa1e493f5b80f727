"""How far a long computation is."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(what: str, count: int, *, rate: str = "", shown: bool = True) -> Iterator[Callable[[int], None]]:
    """A bar with the time left on the terminal, if there is one; gives what to call with how many more are done.

    `rate` is what is counted, such as "heads": then the bar also says how many of them are done in a second.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:,.1f} {rate}/s")

    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield lambda done: None
        return
    rates = [Rate()] if rate else []
    columns: list[str | ProgressColumn] = [what, BarColumn(), MofNCompleteColumn(), *rates, TimeRemainingColumn()]
    with Progress(*columns, console=console, transient=True) as drawn:
        task = drawn.add_task(what, total=count)
        yield lambda done: drawn.advance(task, done)
