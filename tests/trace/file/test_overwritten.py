"""A file that changes while it is open: the old numbers or `Stale`, never other numbers, never the end of the process.

This runs in a process of its own, because touching a mapping of a file that was cut off would end it.
"""

import subprocess
import sys

import pytest
import torch

import regard
from regard.attention.map import AttentionMap, Computed
from regard.attention.mask import Sizes
from regard.trace.file import save
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run, Trace

H, N, D, LAYERS = 2, 1500, 64, 3

HOW = ("cut", "empty", "over", "quiet", "gone", "replaced")
KEPT = ("gone", "replaced")  # the old file lives on under no name

CHILD = """
import os, sys, torch, regard
folder, when = sys.argv[1:3]
torch.set_num_threads(1)
expected = torch.load(f"{folder}/row.pt")  # weights of row 1400 of head 1, by layer, in float64

def rows(trace):
    return torch.stack([layer.weights[0, 1, 1400].double() for layer in trace.layers])

def measures(trace):
    trace.measures()
    return rows(trace)

def page(trace):
    trace.page(values=False)
    return rows(trace)

def saved(trace):
    trace.save(f"{folder}/again")
    return rows(regard.load(f"{folder}/again"))

def proof(trace):
    trace.verify()
    return rows(trace)

def change(path, other, how):
    status, size = os.stat(path), os.path.getsize(path)
    if how == "cut":
        os.truncate(path, size // 3)
    elif how == "empty":
        os.truncate(path, 0)
    elif how == "over":
        with open(path, "r+b") as file:
            file.write(os.urandom(size))
    elif how == "quiet":  # a sound file of the same size, and the time of the last write put back
        with open(path, "r+b") as file:
            file.write(open(other, "rb").read())
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert (os.path.getsize(path), os.stat(path).st_mtime_ns) == (size, status.st_mtime_ns)
    elif how == "gone":
        os.unlink(path)
    elif how == "replaced":
        os.replace(other, path)

for how in sys.argv[3:]:
    path, other = f"{folder}/{how}.trace", f"{folder}/{how}.other"
    trace = regard.load(path)
    if when == "after a look":
        rows(trace)
    change(path, other, how)
    said = []
    for ask in (rows, measures, page, saved, proof):
        try:
            found = ask(trace)
        except regard.errors.Stale as error:
            assert "was changed after it was opened" in str(error), error
            said.append("stale")
        else:
            said.append("same" if torch.allclose(found, expected, atol=1e-6) else "other")
    print(how, *said, flush=True)
"""


def trace_of(seed):
    torch.manual_seed(seed)
    layers = []
    for number in range(LAYERS):
        q, k = torch.randn(1, H, N, D), torch.randn(1, H, N, D)
        map_ = AttentionMap(Computed(q, k, Sizes((1, H), N, N), mask=regard.causal(), scale=D**-0.5))
        layers.append(Layer(f"blocks.{number}", "self", map_, q=q, k=k))
    return Trace([Run(layers)])


def row(layer):
    """Row 1400 of head 1 by the formula, in float64."""
    scores = (layer.q[0, 1, 1400].double() @ layer.k[0, 1].double().mT) * D**-0.5
    scores[1401:] = -torch.inf
    return scores.softmax(-1)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """The bytes of two traces of the same shapes, and what is right of the first."""
    folder = tmp_path_factory.mktemp("two")
    first, second = trace_of(1), trace_of(2)
    save(first, folder / "a")
    save(second, folder / "b")
    return (folder / "a").read_bytes(), (folder / "b").read_bytes(), torch.stack([row(layer) for layer in first.layers])


@pytest.mark.parametrize("when", ["before a look", "after a look"])
def test_a_file_that_changes_under_a_program_gives_the_old_numbers_or_stale(tmp_path, two, when):
    for how in HOW:
        (tmp_path / f"{how}.trace").write_bytes(two[0])
        (tmp_path / f"{how}.other").write_bytes(two[1])
    torch.save(two[2], tmp_path / "row.pt")
    done = subprocess.run([sys.executable, "-c", CHILD, tmp_path, when, *HOW], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-600:])
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert tuple(lines) == HOW
    for how, said in lines.items():
        assert set(said.split()) <= ({"same"} if how in KEPT else {"same", "stale"}), lines
        if how not in KEPT and when == "before a look":
            assert said.split()[0] == "stale", lines


WATCHED = """
import os, sys, torch, regard
path, how = sys.argv[1:]
layer = regard.MultiHead(64, heads=2)
with torch.no_grad(), regard.watch(layer, to=path) as trace:
    layer(torch.randn(1, 3000, 64))
(held,) = trace.layers
before = held.weights[0, 0, 7]
os.truncate(path, 0) if how == "cut" else os.unlink(path)
try:
    assert held.weights[0, 1, 2999].shape == (3000,) and how == "gone"
    assert held.v.isfinite().all()
    print("same")
except regard.errors.Stale:
    print("stale")
"""


@pytest.mark.parametrize(("how", "said"), [("cut", "stale"), ("gone", "same")])
def test_a_trace_that_was_written_while_the_model_ran_survives_its_file(tmp_path, how, said):
    done = subprocess.run([sys.executable, "-c", WATCHED, tmp_path / "a", how], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, [said]), done.stderr[-600:]
