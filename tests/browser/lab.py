"""A JupyterLab with a notebook, and its cells run as a reader runs them."""

import json
import re
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from jupyter_client import BlockingKernelClient
from playwright.sync_api import Error as PlaywrightError

from tests.browser.examples import ALL
from tests.browser.processes import TOKEN, jupyter
from tests.browser.tab import Tab

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
        try:
            self.kernel = self.new_kernel()
        except BaseException:
            self.stop()
            raise

    def ask(self, path: str, about: object = None, method: str = "POST"):
        """What Jupyter's own interface says."""
        headers = {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"}
        data = None if about is None else json.dumps(about).encode()
        request = urllib.request.Request(f"http://{self.home}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def new_kernel(self) -> str:
        """A kernel that listens and has loaded all that is slow to load."""
        kernel = self.ask("/api/kernels", {"name": "python3"})["id"]
        end = time.monotonic() + 120
        while not self.loaded(kernel):
            assert time.monotonic() < end, "the kernel did not start"
        return kernel

    def loaded(self, kernel: str) -> bool:
        """Run the first lines in a kernel; False where it is not far enough yet."""
        client = BlockingKernelClient()
        client.load_connection_file(str(self.folder / f".runtime/kernel-{kernel}.json"))
        client.start_channels()
        try:
            client.wait_for_ready(timeout=60)
            client.execute_interactive(SETUP, timeout=120)
            return True
        except RuntimeError:  # one whose heart does not beat yet counts as dead there
            return False
        finally:
            client.stop_channels()

    def show(self, tab: Tab, name: str, how: str = "", kernel: str = ""):
        """Run a notebook that sees an example; gives the cell's output, which holds the widget."""
        made = f"ALL[{name!r}]()" if name == "hostile" else f"regard.load({str(self.traces / (name + '.trace'))!r})"
        assert name in ALL
        return self.run(tab, f"{SETUP}\nwidget = {made}.see({how})\nwidget", kernel)

    def run(self, tab: Tab, code: str, kernel: str = ""):
        """Run one cell in a notebook of its own; gives its output area."""
        self.count += 1
        file = f"n{self.count}.ipynb"
        (self.folder / file).write_text(notebook([code]), encoding="utf-8")
        self.ask(
            "/api/sessions", {"path": file, "name": file, "type": "notebook", "kernel": {"id": kernel or self.kernel}}
        )
        tab.forgive(["Canceled future for"])  # JupyterLab's own, when it finds a kernel that already runs
        page = tab.page
        page.goto(self.url.format(file))
        cell = page.locator(".jp-CodeCell").first
        cell.locator(".cm-content").wait_for()
        page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').wait_for()
        done = cell.locator(".jp-InputPrompt").filter(has_text=re.compile(r"\[\d+\]"))
        question, output = page.locator(".jp-Dialog"), cell.locator(".jp-Cell-outputArea")
        for _ in range(6):  # a notebook that has just found its kernel may pass over the first request
            try:
                if question.count():  # which kernel: the one that it proposes
                    question.locator(".jp-mod-accept").click(timeout=5000)
                cell.locator(".cm-content").click(timeout=5000)
                page.keyboard.press("Control+Enter")
                done.wait_for(timeout=30_000)
                break
            except PlaywrightError:
                continue
        output.locator(".jp-OutputArea-output").first.wait_for(state="attached")  # a still picture is hidden again
        return output

    def stop(self) -> None:
        self.process.stop()
