"""Connections that send nothing, half a request or a body drop by drop take nothing from those who ask properly."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import ExitStack, contextmanager

import pytest

pytest.importorskip("resource", reason="needs POSIX: limits on descriptors are set by its module resource")

DESCRIPTORS = 300  # that the server may have open
HALF = 450  # connections of those who never finish

SERVER = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({descriptors}, {descriptors}))
{before}
sys.argv = ["regard", "serve", "--no-open", "--keep", {keep!r}]
from regard.cli.main import main
main()
"""

EATER = """
import os, threading, time
def eat():
    while not os.path.exists({flag!r}):
        time.sleep(0.02)
    held = []
    try:
        while True:
            held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        open_ = len(held)
    time.sleep(1.5)
    for one in held:
        os.close(one)
threading.Thread(target=eat, daemon=True).start()
"""


@contextmanager
def served(folder, before=""):
    """(address, token, what it says beside): a server in a process of its own with few descriptors."""
    program = SERVER.format(descriptors=DESCRIPTORS, keep=str(folder / "kept"), before=before)
    told = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with open(folder / "beside", "wb") as beside:
        process = subprocess.Popen(
            [sys.executable, "-c", program], cwd=folder, stdout=subprocess.PIPE, stderr=beside, env=told, text=True
        )
    timer = threading.Timer(120, process.kill)
    timer.start()
    try:
        address = next(line.strip() for line in process.stdout if line.strip().startswith("http://"))
        base, token = address.split("/?token=")
        yield base, token, folder / "beside"
        assert process.poll() is None
    finally:
        timer.cancel()
        process.kill()
        process.wait(20)


def listed(base, token):
    """What a good client gets, over a connection of its own."""
    asked = urllib.request.Request(base + "/api/models", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked, timeout=20) as answer:
        return json.loads(answer.read())


def connected(base, stack, sent=b""):
    host, port = base.removeprefix("http://").split(":")
    one = stack.enter_context(socket.create_connection((host, int(port)), timeout=20))
    one.sendall(sent)
    return one


def closed(one, within=30.0):
    """Whether the other side hangs up; what it says before is read."""
    one.settimeout(within)
    try:
        while one.recv(4096):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


def test_hundreds_of_half_requests_leave_the_server_to_those_who_ask_properly(tmp_path):
    with served(tmp_path) as (base, token, beside), ExitStack() as stack:
        half = []
        for number in range(HALF):
            half.append(connected(base, stack, [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-A: b"][number % 2]))
            if number % 50 == 0:
                assert listed(base, token)
        assert listed(base, token)
        assert all(closed(one) for one in half[-40:])  # no more than the header's time is waited for any of them
        assert listed(base, token)
        assert "Traceback" not in beside.read_text()


def test_a_header_or_a_body_that_comes_drop_by_drop_is_not_waited_for(tmp_path):
    with served(tmp_path) as (base, token, _), ExitStack() as stack:
        header = connected(base, stack, b"GET / HTTP/1.1\r\n")
        start = f"Host: {base.removeprefix('http://')}\r\nOrigin: {base}\r\nAuthorization: Bearer {token}\r\n"
        body = connected(base, stack, f"POST /api/traces HTTP/1.1\r\n{start}Content-Length: 99999\r\n\r\n".encode())
        refused = connected(base, stack, b"POST /api/traces HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n")
        over, ends = time.monotonic() + 60, {}
        drops = {"header": (header, b"X-A: b\r\n"), "body": (body, b"x"), "refused": (refused, b"x")}
        while drops and time.monotonic() < over:
            time.sleep(0.3)
            for name, (one, drop) in list(drops.items()):
                try:
                    one.sendall(drop)
                except OSError:
                    ends[name] = drops.pop(name)
        assert set(ends) == {"header", "body", "refused"}
        assert listed(base, token)


def test_an_upload_in_pieces_and_a_connection_used_again_go_on_as_before(tmp_path):
    import http.client

    import torch

    from regard.trace.record.weights import from_weights

    from_weights(torch.eye(3)[None, None], ["a", "b", "c"]).save(tmp_path / "a.trace")
    data = (tmp_path / "a.trace").read_bytes()
    with served(tmp_path) as (base, token, _):
        client = http.client.HTTPConnection(base.removeprefix("http://"), timeout=20)
        headers = {"Authorization": f"Bearer {token}", "Origin": base}
        for _ in range(3):

            def pieces():
                for first in range(0, len(data), 1000):
                    time.sleep(0.05)
                    yield data[first : first + 1000]

            client.request("POST", "/api/traces", body=pieces(), headers=headers | {"Content-Length": str(len(data))})
            assert set(json.loads(client.getresponse().read())) == {"trace"}
        client.close()


def test_a_server_without_descriptors_answers_again_when_there_are_some(tmp_path):
    flag = tmp_path / "eat"
    with served(tmp_path, EATER.format(flag=str(flag))) as (base, token, beside):
        assert listed(base, token)
        flag.touch()
        time.sleep(0.5)
        assert listed(base, token)  # waits in the queue until descriptors are free again
        assert "Traceback" not in beside.read_text()
