"""A studio, the app around it, and a client that holds the token."""

from contextlib import contextmanager

import torch
from safetensors.torch import load
from starlette.testclient import TestClient

from regard.app.app import make_app
from regard.app.security.guard import AccessPolicy
from regard.app.studio.studio import Studio

POLICY = AccessPolicy("right-token", 8765)
HOST = "127.0.0.1:8765"
SENT = {"origin": f"http://{HOST}", "authorization": "Bearer right-token"}
ASK = {"model": "induction", "text": "the cat sees A B C . the", "steps": 5, "temperature": 0, "edits": []}
ASK |= {"picture": None}
EDIT = {"kind": "mute", "layer": 0, "heads": None, "query": None, "key": None, "factor": None}


@contextmanager
def opened(keep, *paths, headers=SENT, runs=None, raises=True):
    """(client, studio): a server in this process that lives as long as the block."""
    torch.set_num_threads(1)
    studio = Studio(paths, keep=keep, runs=runs)
    app = make_app(studio, POLICY)
    with TestClient(app, f"http://{HOST}", headers=headers, raise_server_exceptions=raises) as client:
        client.studio = studio
        yield client, studio


def run(client, **ask):
    """Every event of one run."""
    events = []
    with client.websocket_connect("/api/run", headers={"host": HOST}) as socket:
        socket.send_json(ASK | ask)
        while not events or events[-1]["kind"] not in ("done", "failed"):
            events.append(socket.receive_json())
    return events


def trace_of(client, **ask):
    """The name of the trace that a run gave."""
    last = run(client, **ask)[-1]
    assert last["kind"] == "done", last
    return last["trace"]


def row(client, trace, layer=0, head=0, query=0, **more):
    """One row of weights, as the server answers it."""
    about = {"layer": layer, "batch": 0, "head": head, "query": query}
    answer = client.post(f"/api/traces/{trace}/ask/row", json=about, params=more)
    assert answer.status_code == 200, answer.text
    return load(answer.content)["weights"].float()


def said(answer):
    """The sentence of a refusal: one line, and not a traceback."""
    sentence = answer.json()["error"]
    assert "\n" not in sentence
    assert "Traceback" not in sentence
    return sentence
