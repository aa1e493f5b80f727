"""A JupyterLab with a notebook, and its cells run as a reader runs them."""

import json
import re
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Error as PlaywrightError

from tests.browser.examples import ALL
from tests.browser.processes import TOKEN, jupyter
from tests.browser.tab import PATIENCE, Tab

REPOSITORY = Path(__file__).resolve().parents[2]
SETUP = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})\nimport regard\nfrom tests.browser.examples import ALL"


def notebook(cells: list[str]) -> str:
    made = [
        {"cell_type": "code", "id": f"c{n}", "metadata": {}, "source": cell, "outputs": [], "execution_count": None}
        for n, cell in enumerate(cells)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": made})


class Lab:
    """One server; its notebooks share one kernel, because torch takes seconds to load."""

    def __init__(self, folder: Path, traces: Path) -> None:
        self.folder, self.traces, self.count = folder, traces, 0
        self.process, self.url = jupyter(folder)
        self.home = urlsplit(self.url).netloc
        self.kernel = self.new_kernel()

    def ask(self, path: str, about: object = None, method: str = "POST"):
        """What Jupyter's own interface says."""
        headers = {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"}
        data = None if about is None else json.dumps(about).encode()
        request = urllib.request.Request(f"http://{self.home}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def new_kernel(self) -> str:
        return self.ask("/api/kernels", {"name": "python3"})["id"]

    def show(self, tab: Tab, name: str, how: str = ""):
        """Run a notebook that sees an example; gives the cell's output, which holds the widget."""
        made = f"ALL[{name!r}]()" if name == "hostile" else f"regard.load({str(self.traces / (name + '.trace'))!r})"
        assert name in ALL
        return self.run(tab, f"{SETUP}\nwidget = {made}.see({how})\nwidget")

    def run(self, tab: Tab, code: str, kernel: str = ""):
        """Run one cell in a notebook of its own; gives its output area."""
        self.count += 1
        file = f"n{self.count}.ipynb"
        (self.folder / file).write_text(notebook([code]), encoding="utf-8")
        self.ask(
            "/api/sessions", {"path": file, "name": file, "type": "notebook", "kernel": {"id": kernel or self.kernel}}
        )
        page = tab.page
        page.goto(self.url.format(file))
        cell = page.locator(".jp-CodeCell").first
        cell.locator(".cm-content").wait_for()
        page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').wait_for()
        begun = cell.locator(".jp-InputPrompt").filter(has_text=re.compile(r"\[(\*|\d+)\]"))
        question = page.locator(".jp-Dialog")
        for _ in range(PATIENCE // 3000):  # a kernel that says idle may still pass over the first cell
            if question.count():  # which kernel: the one that it proposes
                question.locator(".jp-mod-accept").click()
                question.wait_for(state="hidden")
            try:
                cell.locator(".cm-content").click(timeout=3000)
                page.keyboard.press("Control+Enter")
                begun.wait_for(timeout=3000)
                break
            except PlaywrightError:
                continue
        output = cell.locator(".jp-Cell-outputArea")
        output.locator(".jp-OutputArea-output").first.wait_for()
        return output

    def stop(self) -> None:
        self.process.stop()
