"""A tab of a real browser that notices what must never happen: errors, dialogs, requests to elsewhere."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

SHOTS = Path(__file__).parent / "shots"
PATIENCE = 60_000  # milliseconds; the machine may be busy


@dataclass
class Tab:
    """One page of the browser. `home` is the only host that it may talk to ("" for a file)."""

    page: Any
    home: str = ""
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    forgiven: tuple[str, ...] = ()  # parts of messages that are expected here

    def __post_init__(self) -> None:
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda one: one.type == "error" and self.errors.append(f"console: {one.text}"))
        self.page.on("pageerror", lambda one: self.errors.append(f"page: {one}"))
        self.page.on("dialog", self._dialog)
        self.page.on("request", lambda one: self.requests.append(one.url))
        self.page.on("websocket", lambda one: self.requests.append(one.url))

    def _dialog(self, dialog: Any) -> None:
        self.errors.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def strangers(self) -> list[str]:
        """Requests that left the host."""
        return [url for url in self.requests if not self._own(url)]

    def _own(self, url: str) -> bool:
        parts = urlsplit(url)
        if parts.scheme in ("data", "blob", "about"):
            return True
        return parts.scheme == "file" if not self.home else parts.netloc == self.home

    def wrong(self) -> list[str]:
        """All that must not be: what was not forgiven, and requests to elsewhere."""
        told = [error for error in self.errors if not any(part in error for part in self.forgiven)]
        return told + [f"request: {url}" for url in self.strangers()]

    def forgive(self, parts: Iterable[str]) -> None:
        self.forgiven = (*self.forgiven, *parts)

    def shot(self, name: str) -> Path:
        SHOTS.mkdir(exist_ok=True)
        path = SHOTS / f"{name}.png"
        self.page.screenshot(path=path)
        return path
