"""`regard serve` as a process of its own: its words, its port, its end."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import pytest

from regard.app import serving
from regard.errors import ConfigError


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    """(process, address, folder): one server for all tests here."""
    folder = tmp_path_factory.mktemp("home")
    command = [sys.executable, "-m", "regard", "serve", "--no-open", "--keep", str(folder / "kept")]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with open(folder / "beside", "wb") as beside:
        started = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=beside, env=environment, text=True
        )
    timer = threading.Timer(60, started.kill)
    timer.start()
    address = next(line.strip() for line in started.stdout if line.strip().startswith("http://"))
    yield started, address, folder
    timer.cancel()
    if started.poll() is None:
        started.kill()


def get(address, path, token=None, **headers):
    base = address.split("/?")[0]
    sent = headers | ({} if token is None else {"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(urllib.request.Request(base + path, headers=sent), timeout=20) as answer:
        return answer.read()


def test_it_prints_an_address_on_loopback_with_a_token_of_128_bits(process):
    _, address, _ = process
    assert address.startswith("http://127.0.0.1:87")
    assert len(address.split("token=")[1]) >= 22


def test_it_answers_and_opens_with_a_translation(process):
    _, address, _ = process
    token = address.split("token=")[1]
    (card,) = json.loads(get(address, "/api/traces", token))
    assert card["text"] == "The cat sat on the mat."
    with pytest.raises(HTTPError, match="401"):
        get(address, "/api/traces")
    with pytest.raises(HTTPError, match="421"):
        get(address, "/api/traces", token, Host="evil.example")


def test_a_socket_of_the_real_server_runs_a_model_and_is_closed_to_strangers(process):
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    _, address, _ = process
    base, token = address.split("/?token=")
    at, sent = base.replace("http", "ws") + "/api/run", {"Authorization": f"Bearer {token}"}
    with connect(at, origin=base, additional_headers=sent) as socket:
        socket.send(json.dumps({"model": "induction", "text": "A B A", "steps": 2, "temperature": 0}))
        kinds = []
        while kinds[-1:] != ["done"]:
            kinds.append(json.loads(socket.recv(timeout=20))["kind"])
        assert kinds.count("token") == 2
    for origin, headers in ((None, sent), ("http://evil.example", sent), (base, {})):
        with pytest.raises(InvalidStatus, match="403"), connect(at, origin=origin, additional_headers=headers):
            pass
    with connect(at, origin=base, additional_headers=sent) as socket:
        socket.send("x" * ((1 << 20) + 1))
        with pytest.raises(Exception, match="1009"):
            socket.recv(timeout=20)


def test_another_server_takes_the_next_port(process):
    _, address, _ = process
    taken = int(address.split(":")[2].split("/")[0])
    with serving.listen("127.0.0.1", None) as at:
        assert at.getsockname()[1] != taken
    with pytest.raises(ConfigError, match=f"port {taken} of 127.0.0.1 cannot be used"):
        serving.listen("127.0.0.1", taken)


def test_the_token_stands_in_no_log_and_ctrl_c_ends_it_cleanly(process):
    """The last one: it ends the server."""
    started, address, folder = process
    get(address, "/?token=" + address.split("token=")[1])
    get(address, "/")
    started.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert started.wait(20) == 0
    assert time.monotonic() - began < 10
    beside = (folder / "beside").read_text()
    assert address.split("token=")[1] not in beside
    assert "Traceback" not in beside
    assert beside.rstrip().endswith("Closed.")
    assert len(list((folder / "kept").glob("*.trace"))) == 2


@pytest.mark.parametrize(("host", "own"), [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False)])
def test_which_addresses_only_this_machine_reaches(host, own):
    assert serving.is_loopback(host) is own


@pytest.mark.parametrize("host", ["10.1.2.3", "evil.example", "", "127.0.0.1.evil.example", "1270.0.0.1"])
def test_what_others_reach_is_not_taken_for_this_machine(host):
    assert not serving.is_loopback(host)


def test_a_server_of_the_network_is_asked_under_its_own_name():
    assert "10.1.2.3" in serving.names_of("10.1.2.3")
    assert "[::1]" in serving.names_of("::1")
    assert "evil.example" not in serving.names_of("0.0.0.0")


def test_a_browser_is_opened_by_a_file_and_not_by_the_token(monkeypatch):
    seen = []

    def look(address):
        path = Path(address.removeprefix("file://"))
        seen.append((address, path.read_text(), path.parent.stat().st_mode & 0o777))

    monkeypatch.setattr(serving.webbrowser, "open", look)
    monkeypatch.setattr(serving.time, "sleep", lambda _: None)
    serving.open_browser("http://127.0.0.1:8765/?token=secret")
    ((address, page, mode),) = seen
    assert "secret" not in address
    assert 'url=http://127.0.0.1:8765/?token=secret"' in page
    assert mode == 0o700
    assert not Path(address.removeprefix("file://")).exists()
