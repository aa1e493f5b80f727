"""The studio as a reader meets it, the same in every host: keys, clicks, and the numbers as they are drawn."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.browser.tab import PATIENCE, Tab

CHOICE = Path(__file__).parents[2] / "web/src/choose/choice.ts"


def view_names(text: str) -> tuple[str, ...]:
    """The names of the views in the order of their keys, as the explorer lists them.

    >>> view_names('export const VIEWS = ["map", "heads"] as const;')
    ('map', 'heads')
    """
    (listed,) = re.findall(r"const VIEWS = \[(.*?)\]", text, re.DOTALL)
    return tuple(re.findall(r'"(\w+)"', listed))


VIEWS = view_names(CHOICE.read_text(encoding="utf-8"))


class Studio:
    """A studio in a tab. `kind` is the host: "served", "page" or "notebook"."""

    def __init__(self, tab: Tab, kind: str, within: Any = None) -> None:
        self.tab, self.page, self.kind = tab, tab.page, kind
        self.root = (within or self.page).locator(".regard").first
        self.root.locator("[data-view]").first.wait_for()  # something is open

    # What is shown

    def view(self, name: str) -> Any:
        """The element of a view."""
        return self.root.locator(f'[data-view="{name}"]')

    def press(self, key: str, times: int = 1) -> None:
        """A key, pressed where no field takes it."""
        self.root.evaluate("element => element.focus()")
        for _ in range(times):
            self.page.keyboard.press(key)

    def open(self, name: str) -> Any:
        """Go to a view by its key; gives its element once it is there."""
        self.press(str(VIEWS.index(name) + 1))
        element = self.view(name)
        element.wait_for()
        return element

    def place(self, layer: int = 0, head: int = 0, query: int | None = None, key: int | None = None) -> None:
        """Pick by keyboard alone: from the first layer and head on, and from the first cell."""
        self.press("Escape", 2)
        self.press("{", 8)
        self.press("}", layer)
        self.press("[", 8)
        self.press("]", head)
        if query is not None:
            self.press("ArrowDown", query + 1)
        if key is not None:
            self.press("ArrowRight", key + 1)

    def tabs(self) -> list[str]:
        return self.root.get_by_role("tablist").first.get_by_role("tab").all_inner_texts()

    # Numbers as drawn

    def probe(self, view: str, name: str, *about: Any) -> Any:
        """What the view's probe says: arrays as lists, what is not finite as None."""
        return self.view(view).evaluate(
            """async (element, [name, about]) => {
                 const plain = (value) => value instanceof Map || value instanceof Set ? [...value].map(plain)
                   : ArrayBuffer.isView(value) || Array.isArray(value) ? Array.from(value, plain)
                   : typeof value === "number" ? (Number.isFinite(value) ? value : null)
                   : value && typeof value === "object"
                     ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)])) : value ?? null;
                 const asked = element.regard?.[name];
                 if (typeof asked !== "function") throw new Error(`the view has no probe called ${name}`);
                 return plain(await asked(...about));
               }""",
            [name, list(about)],
        )

    def probe_all(self, view: str, name: str, abouts: list[list[Any]]) -> list[float | None]:
        """What a probe says for each of several questions, all of the same moment."""
        return self.view(view).evaluate(
            """(element, [name, abouts]) => abouts.map((about) => {
                 const value = element.regard[name](...about);
                 return typeof value === "number" && Number.isFinite(value) ? value : null;
               })""",
            [name, abouts],
        )

    def grid(self, view: str, name: str, rows: int, columns: int) -> list[list[float | None]]:
        """What a probe of (row, column) says for all of them."""
        found = self.probe_all(view, name, [[i, j] for i in range(rows) for j in range(columns)])
        return [found[i * columns : (i + 1) * columns] for i in range(rows)]

    def probes(self, view: str) -> list[str]:
        return self.view(view).evaluate("element => Object.keys(element.regard ?? {})")

    def eventually(self, ask: Callable[[], Any], good: Callable[[Any], bool] = bool, seconds: float = 0) -> Any:
        """What `ask` gives as soon as it is good."""
        end = time.monotonic() + (seconds or PATIENCE / 1000)
        while True:
            found = ask()
            if good(found):
                return found
            if time.monotonic() > end:
                raise AssertionError(f"still {found!r:.400} after a long wait; errors: {self.tab.errors}")
            self.page.wait_for_timeout(40)

    def settled(self, view: str) -> None:
        """Wait until a view has drawn all that it asked for."""
        self.probe(view, "settled")

    # What a reader does

    def click(self, view: str, at: dict[str, float], **how: Any) -> None:
        """Click in the middle of a rectangle that a probe gave, in the pixels of the view's element."""
        x, y = at["x"] + at["width"] / 2, at["y"] + at["height"] / 2
        self.view(view).click(position={"x": x, "y": y}, **how)

    def alerts(self) -> list[str]:
        return self.root.get_by_role("alert").all_inner_texts()

    def shot(self, name: str) -> None:
        """A screenshot, kept as an artefact."""
        self.tab.shot(f"{name}-{self.kind}")
