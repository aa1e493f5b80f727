"""A file that is written over while a server shows it: refused by its code, and the server lives.

In a process of its own: were the file mapped, asking would end it.
"""

import subprocess
import sys
from pathlib import Path

import torch

from regard.trace.record.weights import from_weights

CHILD = """
import os, sys
from pathlib import Path
from tests.app.served import opened, row

folder = Path(sys.argv[1])
path = folder / "shown.trace"
sound = path.read_bytes()

def write_over(data):
    with open(path, "r+b") as file:
        file.truncate(0)
        file.write(data)

with opened(folder / "kept", path, raises=False) as (client, _):
    (name,) = [one["id"] for one in client.get("/api/traces").json()]
    before = row(client, name, layer=0, query=7)
    for data in (b"", sound[: len(sound) // 2], os.urandom(len(sound))):
        write_over(data)
        for what, about in (
            ("row", {"layer": 1, "batch": 0, "head": 0, "query": 8}),
            ("row", {"layer": 2, "batch": 0, "head": 0, "query": 8}),
        ):
            answer = client.post(f"/api/traces/{name}/ask/{what}", json=about)
            assert 400 <= answer.status_code < 500, answer.text
            assert answer.json()["code"].startswith("file."), answer.text
            print(answer.json()["code"])
        assert client.get("/api/traces").status_code == 200
    write_over(sound)
    assert row(client, name, layer=0, query=7).equal(before)
print("lives")
"""


def test_a_file_written_over_is_refused_by_its_code_and_the_server_lives(tmp_path):
    torch.manual_seed(0)
    layers = [torch.randn(1, 2, 300, 700).softmax(-1) for _ in range(3)]  # several chunks each
    from_weights(layers).save(tmp_path / "shown.trace")
    done = subprocess.run(
        [sys.executable, "-c", CHILD, tmp_path], capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-800:])
    codes = done.stdout.split()
    assert codes[0] == "file.changed"
    assert codes[-1] == "lives"
    assert len(codes) == 7
