"""What an edit changed in the output, against sums written out."""

import math
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import Tensor, nn

from regard.errors import WatchError
from regard.trace.change.edit import edit
from regard.trace.change.effect import compare_outputs
from tests.trace.models import Stack, seeded

WIDTH, LENGTH, WORDS = 24, 5, 11


class Speaker(nn.Module):
    """A small language model that may return its logits in one of the usual ways."""

    def __init__(self, way: str = "tensor") -> None:
        super().__init__()
        self.way = way
        self.embed, self.stack, self.head = nn.Embedding(WORDS, WIDTH), Stack(depth=2), nn.Linear(WIDTH, WORDS)
        self.drop = nn.Dropout(0.5)
        seeded(self)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, cache: list | None = None) -> Any:
        if cache is not None:
            cache.append(len(cache))
        mask = None if attention_mask is None else attention_mask.bool()[:, None, None]
        hidden = self.stack(self.drop(self.embed(input_ids)), mask)
        logits = self.head(hidden)
        return {
            "tensor": logits,
            "named": SimpleNamespace(logits=logits, loss=None),
            "mapping": {"logits": logits, "other": 3},
            "tuple": (None, logits, hidden),
            "hidden": SimpleNamespace(last_hidden_state=hidden),
            "pooled": logits[:, -1],
            "nothing": {"answer": 42},
        }[self.way]


def ids() -> Tensor:
    return torch.tensor([[1, 5, 2, 7, 3], [4, 4, 9, 0, 0]])


@pytest.mark.parametrize("way", ["tensor", "named", "mapping", "tuple"])
def test_an_effect_holds_both_outputs_and_their_divergence(way):
    model, x = Speaker(way).eval(), ids()
    with edit(model) as e:
        e.mute("layers.1", heads=2)
        change = e.run(x)
        after = compare_outputs(model(x), model(x), {}).after
    before = compare_outputs(model(x), model(x), {}).before
    assert torch.equal(change.before, before)
    assert torch.equal(change.after, after)
    assert not change.before.requires_grad
    for b in range(2):
        for i in range(LENGTH):
            p = [math.exp(s) for s in before[b, i].double().tolist()]
            q = [math.exp(s) for s in after[b, i].double().tolist()]
            wanted = sum(x / sum(p) * math.log(x / sum(p) / (y / sum(q))) for x, y in zip(p, q))
            assert float(change.kl[b, i]) == pytest.approx(wanted, abs=1e-9)
    assert change.largest == float((after - before).abs().max())
    assert change.largest > 0


def test_an_effect_without_edits_is_nothing():
    model = Speaker().eval()
    with edit(model) as e:
        change = e.run(ids())
    assert change.largest == 0
    assert not change.kl.any()


def test_one_line_for_each_position_says_what_the_model_would_say():
    model = Speaker().eval()
    with edit(model) as e:
        e.block(query=3, key=[0, 1, 2])
        change = e.run(ids())
    records = change.records()
    assert len(records) == 2 * LENGTH
    row = records[LENGTH + 3]
    assert (row["batch"], row["position"]) == (1, 3)
    assert row["before"] == str(int(change.before[1, 3].argmax()))
    assert row["after"] == str(int(change.after[1, 3].argmax()))
    assert row["p after"] == pytest.approx(float(change.after[1, 3].softmax(-1).max()))
    assert row["kl"] == pytest.approx(float(change.kl[1, 3]))
    assert "block(query 3, key [0, 1, 2])" in repr(change)


def test_the_strongest_tokens_stand_with_their_shares_before_and_after():
    model = Speaker().eval()
    with edit(model) as e:
        e.mute("layers.0")
        change = e.run(ids())
    rows = change.top(3, position=2, batch=1).rows
    p, q = change.before[1, 2].softmax(-1), change.after[1, 2].softmax(-1)
    named = [int(str(row["token"])) for row in rows]
    assert set(named) == {*p.topk(3).indices.tolist(), *q.topk(3).indices.tolist()}
    assert [row["after"] for row in rows] == pytest.approx([float(q[i]) for i in named])
    assert [row["change"] for row in rows] == pytest.approx([float(q[i] - p[i]) for i in named])
    assert named[0] == int(q.argmax())
    with pytest.raises(WatchError, match="position 5 of entry 0 was asked for, but there are 5 positions in 2 entries"):
        change.top(position=5)


def test_tokens_are_read_by_the_tokenizer():
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({f"word{i}": i for i in range(WORDS)}, unk_token="word0")
    )
    model = Speaker().eval()
    with edit(model, tokenizer) as e:
        e.mute("layers.0")
        change = e.run(input_ids=ids())
    assert [row["token"] for row in change.records()][:3] == ["word1", "word5", "word2"]
    assert str(change.top().rows[0]["token"]).startswith("word")


def test_padding_is_left_out():
    model, x = Speaker().eval(), ids()
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    with edit(model) as e:
        e.scale("layers.1", None, 5.0)
        change = e.run(input_ids=x, attention_mask=mask)
    assert len(change.records()) == 8
    assert not change.kl[1, 3:].any()
    assert change.mean(change.kl) == pytest.approx(float(change.kl.sum()) / 8)


def test_hidden_states_have_no_tokens_and_no_divergence():
    model = Speaker("hidden").eval()
    with edit(model) as e:
        e.mute("layers.1")
        change = e.run(ids())
    assert change.kl is None
    assert "kl" not in change.records()[0]
    assert change.what == "last_hidden_state"
    with pytest.raises(WatchError, match="gave last_hidden_state, which has no tokens to rank"):
        change.top()


def test_one_answer_per_entry_is_one_line_each():
    model = Speaker("pooled").eval()
    with edit(model) as e:
        e.mute("layers.1")
        change = e.run(ids())
    assert len(change.records()) == 2
    assert change.top(position=1).rows


def test_what_cannot_be_compared_is_refused_unless_somebody_reads_it():
    model = Speaker("nothing").eval()
    with edit(model) as e, pytest.raises(WatchError, match=r"returned dict without logits; give edit\(model, read=…\)"):
        e.run(ids())
    with edit(model, read=lambda output: torch.tensor([float(output["answer"])])) as e:
        e.mute("layers.1")
        assert e.run(ids()).largest == 0


def test_both_runs_draw_the_same_random_numbers_and_get_their_own_cache():
    model, x, cache = Speaker().train(), ids(), [7]
    with edit(model) as e:
        assert e.run(x, cache=cache).largest == 0
        torch.manual_seed(2)
        e.run(x)
        after = torch.get_rng_state()
    torch.manual_seed(2)
    model(x)
    assert torch.equal(torch.get_rng_state(), after)
    assert cache == [7]


def test_an_effect_shows_itself_in_the_terminal_and_in_html():
    model = Speaker().eval()
    with edit(model) as e:
        e.mute("layers.1", heads=[1])
        change = e.run(ids())
    console = Console(width=100, record=True, file=StringIO())
    console.print(change)
    shown = console.export_text()
    assert "largest change" in shown
    assert "mute('layers.1', heads 1)" in shown
    assert "<table>" in change._repr_html_()
