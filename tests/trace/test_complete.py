"""Nothing is missed in silence: attention is heard exactly, or the trace says that it is incomplete."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

import regard
from tests.trace.by_hand import WAYS, build
from tests.trace.watched import MODES, watched

BELOW = {"sigmoid", "Bahdanau", "Bahdanau by sum", "weighted sum by exp", "direct kernel", "vmap", "jagged"}
HEARD = [
    "exp over sum",
    "exp of log_softmax",
    "softmax into a buffer",
    "Transformer-XL",
    "heads first",
    "sigmoid",
    "non-local",
    "Bahdanau",
]


@MODES
@pytest.mark.parametrize("way", HEARD)
def test_attention_by_another_normaliser_or_axis_is_heard_exactly(way: str, mode: Any) -> None:
    model, x, source = build(way)
    with mode():
        trace = watched(model, x, source)
    if "torch.bmm" in "".join(trace.notes) and way in BELOW:  # beside other threads, which an earlier test left
        return
    assert [layer.name for layer in trace.layers] == ["first", "second"], trace.verify()
    assert model.second.met is not None
    assert_close(trace["second"].weights.dense(), model.second.met, atol=1e-6, rtol=0)
    assert trace.verify(), trace.verify()


@MODES
@pytest.mark.parametrize("way", [way for way in WAYS if way not in HEARD])
def test_attention_that_is_not_heard_makes_the_trace_incomplete(way: str, mode: Any) -> None:
    model, x, source = build(way)
    with mode():
        trace = watched(model, x, source)
    proofs = trace.verify()
    if "torch.bmm" in "".join(trace.notes) and way in BELOW:
        return
    assert not proofs, proofs
    assert "second" in repr(proofs)


BESIDE = """
import threading, torch, regard
from tests.trace.by_hand import WAYS, build
threading.Thread(target=threading.Event().wait, daemon=True).start()
for way in WAYS:
    model, x, source = build(way)
    with torch.inference_mode(), regard.watch(model) as trace:
        model(x, source)
    assert any("torch.bmm" in note for note in trace.notes)
    heard = [layer.name for layer in trace.layers] == ["first", "second"] and bool(trace.verify())
    print(way, heard or not trace.verify(), sep=": ")
"""


def test_beside_other_threads_little_is_missed_in_inference_mode_and_a_note_says_so() -> None:
    done = subprocess.run([sys.executable, "-c", BESIDE], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = dict(line.split(": ") for line in done.stdout.splitlines())
    assert {way for way, known in told.items() if known == "False"} <= BELOW


@pytest.mark.parametrize("way", WAYS)
def test_the_count_of_torch_itself_agrees(way: str) -> None:
    model, x, source = build(way)
    with torch.no_grad(), regard.watch(model) as trace:
        model(x, source)
    with torch.no_grad():
        found = regard.audit(model, x, source)
    assert bool(found) == trace.verify().complete, found
    assert len(found.missed) == len(trace.missed)
    assert found or "second" in repr(found)


def test_a_trace_file_keeps_what_was_missed(tmp_path: Path) -> None:
    model, x, source = build("squared ReLU")
    with torch.no_grad(), regard.watch(model, to=tmp_path / "written.trace") as trace:
        model(x, source)
    trace.save(tmp_path / "saved.trace")
    for name in ("written.trace", "saved.trace"):
        read = regard.load(tmp_path / name)
        assert read.missed == trace.missed
        assert [one.name for one in read.missed] == ["second"]
        assert not read.verify()
        assert read.verify().layers
        assert all(proof.status == "verified" for proof in read.verify())
        assert "incomplete: attention in second was not heard" in repr(read)


def test_the_terminal_says_that_a_trace_is_incomplete(capsys: pytest.CaptureFixture[str]) -> None:
    model, x, source = build("squared ReLU")
    with torch.no_grad(), regard.watch(model) as trace:
        model(x, source)
    for layer in (None, "first"):
        trace.print(layer)
        assert "verified; incomplete: attention in second was not heard" in " ".join(capsys.readouterr().out.split())


def test_only_layers_that_were_asked_for_can_be_missed() -> None:
    model, x, source = build("squared ReLU")
    with torch.no_grad(), regard.watch(model, layers="first") as trace:
        model(x, source)
    assert trace.verify()
    assert not trace.missed


def test_each_run_has_missed_what_it_missed() -> None:
    model, x, source = build("squared ReLU")
    with torch.no_grad(), regard.watch(model) as trace:
        model(x, source)
        model(x + 1, source)
        model.second(x, source)
    assert [[(one.name, one.count) for one in run.missed] for run in trace.runs] == [[("second", 1)], [("second", 2)]]


@pytest.mark.parametrize("way", ["exp over sum", "squared ReLU", "sdpa"])
def test_attention_in_a_module_that_was_never_registered_is_missed_by_name(way: str) -> None:
    class Hides(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            whole, self.x, self.source = build("linear" if way == "sdpa" else way)
            self.first, self.rest = whole.first, [whole.first if way == "sdpa" else whole.second]
            if way == "sdpa":
                self.rest, self.first = [whole.first], build("sigmoid")[0].first

        def forward(self) -> torch.Tensor:
            return self.rest[0](self.x + self.first(self.x, self.source), self.source)

    model = Hides()
    with torch.no_grad(), regard.watch(model) as trace:
        model()
    assert [layer.name for layer in trace.layers] == ["first"]
    assert [one.name for one in trace.missed] == ["Hides"]
    assert not trace.verify()


class Textbook(nn.Module):
    """Attention over two axes, as textbooks begin: no batch and no heads."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(6, 4, bias=False) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(torch.softmax(self.q(x) @ self.k(x).T / 2, dim=-1)) @ self.v(x)

    def weights(self, x: Tensor) -> Tensor:
        return (self.q(x) @ self.k(x).T / 2).softmax(-1)


class Loop(nn.Module):
    """Such attention for each text of a batch, after another that is heard in any case."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.each = nn.MultiheadAttention(6, 2, batch_first=True), Textbook()

    def forward(self, x: Tensor) -> Tensor:
        x = self.before(x, x, x, need_weights=False)[0]
        return torch.stack([self.each(text) for text in x])


@MODES
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_attention_over_two_axes_is_heard(dropout: float, mode: Any) -> None:
    torch.manual_seed(0)
    model, x = Textbook(dropout), torch.randn(7, 6)
    with mode():
        trace = watched(model, x)
        assert_close(trace[0].weights.dense()[0, 0], model.weights(x))
    assert trace.verify(), trace.verify()


def test_attention_over_two_axes_is_edited_and_heard_for_each_text() -> None:
    torch.manual_seed(0)
    model, x = Loop().eval(), torch.randn(3, 7, 6)
    with torch.no_grad():
        trace = watched(model, x)
        with regard.edit(model) as e:
            e.mute("each")
            assert not model(x).any()
    assert [layer.name for layer in trace.layers] == ["before", "each", "each#2", "each#3"]
    assert trace.verify(), trace.verify()


class PooledTexts(nn.Module):
    """One query for each text, by a softmax (b, n) and a weighted sum; nothing in it is called attention."""

    def __init__(self, axes: int) -> None:
        super().__init__()
        self.axes, self.score = axes, nn.Linear(6, 1)

    def forward(self, x: Tensor) -> Tensor:
        if self.axes == 3:
            return (self.score(x).softmax(1) * x).sum(1)
        return (self.score(x).squeeze(2).softmax(1)[..., None] * x).sum(1)


@pytest.mark.parametrize("axes", [2, 3])
def test_a_weighted_sum_over_the_positions_of_a_text_is_missed_by_name(axes: int) -> None:
    model = nn.Sequential(nn.TransformerEncoderLayer(6, 2, 8, batch_first=True), PooledTexts(axes)).eval()
    with torch.no_grad():
        trace = watched(model, torch.randn(3, 7, 6))
    assert [one.name for one in trace.missed] == ["1"], trace.verify()


def by_hand(q: Tensor, k: Tensor, v: Tensor, found: list[Tensor]) -> None:
    with torch.no_grad():
        found.append((q @ k.mT).softmax(-1) @ v)


class Threaded(nn.Module):
    """Attention by hand in a thread that knows no module, and holds the tensors of the one that waits."""

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.scaled_dot_product_attention(x, x, x)
        found: list[Tensor] = []
        thread = threading.Thread(target=by_hand, args=(x, x, x, found))
        thread.start()
        thread.join()
        return found[0]


def test_products_in_another_thread_are_missed_by_name_where_they_are_of_the_same_numbers() -> None:
    with torch.no_grad():
        trace = watched(Threaded(), torch.randn(2, 3, 7, 4))
    assert "another thread" in str(trace.missed[0])


class Buffered(nn.Module):
    """Scores and mix are written to tensors that were there before."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.scaled_dot_product_attention(x, x, x)
        b, n, _ = x.shape
        mix = torch.zeros_like(x)
        if self.way == "baddbmm_":
            return mix.baddbmm_((x @ x.mT).relu(), x)
        scores = torch.empty(b, n, n)
        multiply = torch.bmm if self.way == "bmm" else torch.matmul
        multiply(x, x.mT, out=scores)
        weights = torch.exp(scores - scores.amax(-1, keepdim=True))
        version = mix._version
        multiply(weights / weights.sum(-1, keepdim=True), x, out=mix)
        assert mix._version == version + 1
        return mix


@pytest.mark.parametrize("way", ["bmm", "matmul", "baddbmm_"])
def test_products_that_are_written_to_a_tensor_of_the_callers_are_missed_by_name(way: str) -> None:
    with torch.no_grad():
        trace = watched(Buffered(way), torch.randn(3, 5, 4))
    assert len(trace.layers) == 1
    assert [one.name for one in trace.missed] == ["Buffered"]
    assert not trace.verify()
