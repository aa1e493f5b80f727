"""Processes that tests talk to: `regard serve`, and a JupyterLab. Each on a free port, each ended by its own id."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

TOKEN = "regard"


class Process:
    """A child in its own group, whose words are kept; `stop` ends it and what it started."""

    def __init__(self, command: list[str], folder: Path, **more: str) -> None:
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **more}
        self.child = subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self.lines: list[str] = []
        self.heard = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            with self.heard:
                self.lines.append(line)
                self.heard.notify_all()
        with self.heard:
            self.heard.notify_all()

    def said(self, pattern: str, seconds: float = 120) -> str:
        """The first match in what it says, as soon as it says so."""
        end = time.monotonic() + seconds
        with self.heard:
            while True:
                for line in self.lines:
                    if found := re.search(pattern, line):
                        return found[0]
                left = end - time.monotonic()
                if left <= 0 or self.child.poll() is not None:
                    raise AssertionError(f"nothing like {pattern} was said:\n{''.join(self.lines[-40:])}")
                self.heard.wait(min(left, 1))

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.child.poll() is None:
            os.killpg(self.child.pid, how)
            try:
                self.child.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(self.child.pid, signal.SIGKILL)
                self.child.wait(15)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def jupyter(folder: Path) -> tuple[Process, str]:
    """A JupyterLab over the notebooks of a folder, and its address with the token."""
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    quiet = {
        "ServerApp.port_retries": "0",
        "ServerApp.open_browser": "False",
        "ServerApp.root_dir": str(folder),
        "ServerApp.allow_root": "True",
        "IdentityProvider.token": TOKEN,
        "LabApp.extension_manager": "readonly",
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "LabApp.news_url": "None",
    }
    options = [f"--{name}={value}" for name, value in quiet.items()]
    settings = folder / ".settings/@jupyterlab"
    quiet_words = {
        "apputils-extension/notification": '{"fetchNews": "false", "checkForUpdates": false}',
        "notebook-extension/tracker": '{"autoStartDefaultKernel": true}',
    }
    for name, text in quiet_words.items():
        file = settings / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    less = folder / ".config/labconfig/page_config.json"
    less.parent.mkdir(parents=True, exist_ok=True)
    less.write_text('{"disabledExtensions": {"@jupyterlab/debugger-extension": true}}')  # it talks to kernels that end
    own = {f"JUPYTER_{name}_DIR": str(folder / f".{name.lower()}") for name in ("CONFIG", "DATA", "RUNTIME")}
    command = [sys.executable, "-m", "jupyter", "lab", f"--port={port}", "--ip=127.0.0.1", *options]
    own |= {"IPYTHONDIR": str(folder / ".ipython"), "JUPYTERLAB_SETTINGS_DIR": str(settings.parent)}
    process = Process(command, folder, **own)
    _answers(process, f"{base}/api/status?token={TOKEN}")
    return process, f"{base}/doc/tree/{{}}?token={TOKEN}"


def _answers(process: Process, url: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.child.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    process.stop()
    raise AssertionError(f"{url} did not answer:\n{''.join(process.lines[-40:])}")
