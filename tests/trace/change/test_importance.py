"""Heads ranked by what is lost without them."""

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from regard.errors import WatchError
from regard.trace.change.importance import importance
from regard.trace.doors.dispatcher import DOORS
from tests.trace.models import Attention, Stack, seeded

WIDTH, HEADS, LENGTH = 24, 3, 5


class Planted(nn.Module):
    """Two layers of which only one head is listened to: head 1 of layer 1."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = seeded(Stack(depth=2)).layers
        self.head = seeded(nn.Linear(WIDTH, 7), 2)
        with torch.no_grad():
            for layer, kept in zip(self.layers, (None, 1)):
                whole = layer.out.weight.unflatten(1, (HEADS, -1))
                whole[:, [h for h in range(HEADS) if h != kept]] *= 1e-3

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


def inputs(batch: int = 2) -> Tensor:
    return torch.randn(batch, LENGTH, WIDTH, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("how", ["zero", "mean", "resample"])
def test_the_one_head_that_matters_comes_first(how):
    found = importance(Planted(), inputs(), how=how, progress=False)
    assert len(found) == 2 * HEADS
    assert (found.rows[0]["layer"], found.rows[0]["head"]) == ("layers.1", 1)
    assert found.rows[0]["kl"] > 10 * found.rows[1]["kl"]
    assert [row["kl"] for row in found.rows] == sorted((row["kl"] for row in found.rows), reverse=True)
    assert DOORS.users == 0


def test_every_line_is_the_model_without_that_head():
    model, x = Planted().double(), inputs().double()
    plain = model(x)
    found = importance(model, x, metric=lambda out: out.square().sum(), progress=False)
    assert found.baseline == pytest.approx(float(plain.detach().square().sum()))
    for row in found.rows:
        twin = Planted().double()
        with torch.no_grad():
            layer = twin.layers[int(str(row["layer"])[-1])]
            layer.out.weight.unflatten(1, (HEADS, -1))[:, row["head"]] = 0
        assert row["metric"] == pytest.approx(float(twin(x).square().sum()))
        assert row["change"] == pytest.approx(row["metric"] - found.baseline)
    sizes = [abs(row["change"]) for row in found.rows]
    assert sizes == sorted(sizes, reverse=True)


def test_the_loss_of_a_library_model_is_a_metric_and_layers_limit_what_is_muted():
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=31, n_positions=16, n_embd=24, n_layer=3, n_head=4)
    model = transformers.GPT2LMHeadModel(config).eval()
    ids = torch.randint(0, 31, (2, 7))
    found = importance(model, {"input_ids": ids, "labels": ids}, "loss", layers=["h.0", "h.2"], progress=False)
    assert found.baseline == pytest.approx(float(model(ids, labels=ids).loss))
    assert {row["layer"] for row in found.rows} == {"transformer.h.0.attn", "transformer.h.2.attn"}
    assert len(found) == 8
    with pytest.raises(WatchError, match="returned no loss; give it labels"):
        importance(model, {"input_ids": ids}, "loss", progress=False)


def test_a_module_that_is_called_again_counts_as_another_layer():
    class Again(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = seeded(Attention())

        def forward(self, x: Tensor) -> Tensor:
            return self.attention(x + self.attention(x))

    found = importance(Again(), (inputs(),), progress=False)
    assert {row["layer"] for row in found.rows} == {"attention", "attention#2"}
    assert len({row["kl"] for row in found.rows}) == 2 * HEADS


def test_hidden_states_are_ranked_by_the_share_that_moves():
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=31,
        hidden_size=24,
        intermediate_size=20,
        num_hidden_layers=1,
        num_attention_heads=4,
        max_position_embeddings=16,
    )
    model, ids = transformers.BertModel(config).eval(), torch.randint(0, 31, (2, 7))
    mask = torch.tensor([[1] * 7, [1] * 3 + [0] * 4])
    found = importance(model, {"input_ids": ids, "attention_mask": mask}, progress=False)
    best = found.rows[0]
    plain = model(ids, attention_mask=mask).last_hidden_state
    with torch.no_grad():
        head = int(str(best["head"]))
        model.encoder.layer[0].attention.output.dense.weight[:, head * 6 : head * 6 + 6] = 0
    real = mask.bool()
    other = model(ids, attention_mask=mask).last_hidden_state
    assert best["relative"] == pytest.approx(float((other - plain)[real].norm() / plain[real].norm()), rel=1e-4)


def test_the_model_and_the_random_state_are_left_as_they_were():
    model, x = Planted(), inputs()
    weights = [p.clone() for p in model.parameters()]
    torch.manual_seed(4)
    wanted = torch.get_rng_state()
    importance(model, x, progress=True)
    assert torch.equal(torch.get_rng_state(), wanted)
    assert_close(list(model.parameters()), weights)


BAD = {
    "no model": (lambda: importance(3, inputs()), "a model is a torch.nn.Module"),
    "no attention": (lambda: importance(nn.Linear(3, 3), torch.zeros(2, 3)), "no attention was seen in the model"),
    "metric": (lambda: importance(Planted(), inputs(), "accuracy"), "metric is 'accuracy'; give a function"),
    "many numbers": (
        lambda: importance(Planted(), inputs(), lambda out: out),
        r"one number, but a tensor of shape \(2, 5, 7\)",
    ),
    "how": (lambda: importance(Planted(), inputs(), how="loud"), "muted by zero, mean, resample"),
    "layers": (lambda: importance(Planted(), inputs(), layers="encoder"), "no module is called 'encoder'"),
    "no layer": (
        lambda: importance(Planted(), inputs(), layers="head"),
        "no attention of the model fits 'head'; it has it at: layers.0",
    ),
    "one entry": (lambda: importance(Planted(), inputs(1), how="resample"), "called with one entry"),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_cannot_be_ranked_is_refused_in_a_sentence(bad):
    ask, words = BAD[bad]
    with pytest.raises(WatchError, match=words):
        ask()
    assert DOORS.users == 0
