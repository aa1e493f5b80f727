"""`regard serve` over a folder of traces."""

import json
import signal
import sys
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from tests.browser.processes import Process, free_port


class Server:
    def __init__(self, folder: Path, *more: str, start: tuple[str, ...] = ("-m", "regard")) -> None:
        files = sorted(str(path) for path in folder.glob("*.trace"))
        keep = folder.parent / f"{folder.name}-kept-{free_port()}"
        command = [sys.executable, *start, "serve", *files, *more, "--port", str(free_port())]
        self.process = Process([*command, "--keep", str(keep), "--no-open"], folder, BROWSER="true")
        try:
            self.first = self.process.said(r"http://\S+\?token=\S+").partition("#")[0]
            self.home = urlsplit(self.first).netloc
            self.ids = {card["name"]: card["id"] for card in self.get("/api/traces")}
        except BaseException:
            self.process.stop()
            raise

    def get(self, path: str):
        """What the server says, asked with a cookie as the page would."""
        handlers = urllib.request.HTTPCookieProcessor()
        opener = urllib.request.build_opener(handlers)
        opener.open(self.first, timeout=60).close()
        with opener.open(f"http://{self.home}{path}", timeout=60) as answer:
            return json.load(answer)

    def address(self, name: str = "", more: str = "") -> str:
        """The address of a trace; `more` are further parts, "#/view=map"."""
        parts = more.removeprefix("#/")
        if name:
            parts = f"trace={self.ids[name]}" + (f"&{parts}" if parts else "")
        return f"{self.first}#/{parts}"

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        self.process.stop(how)
