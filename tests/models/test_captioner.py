"""Show, attend and tell: against the formulas of the paper in loops, step by step, hard and soft."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

import regard
from regard.data.special import BEGIN, END, PAD
from regard.decode import Limits, beam
from regard.errors import ShapeError
from regard.models.captioner_config import CaptionerConfig
from regard.models.decoder_state import DecoderState
from regard.training.caption_loss import caption_loss
from tests.models.test_seq2seq import gru_loop

N, W, E, F_, B, T = 17, 10, 6, 7, 3, 5
ROWS, COLUMNS, STRIDE = 3, 4, 4
SIZES = {"features": (5, 8, 9), "strides": (2, 1, 2), "width": W, "embedding": E, "hidden": F_}


def make(**options):
    """Weights far from where they start, so that nothing hides behind a zero."""
    model = CaptionerConfig(ROWS * STRIDE, COLUMNS * STRIDE, N, **SIZES | options).build()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model.double().eval()


def draw_batch():
    pictures = torch.randn(B, 3, ROWS * STRIDE, COLUMNS * STRIDE, dtype=torch.float64)
    captions = torch.randint(4, N, (B, T))
    captions[:, 0] = BEGIN
    return pictures, captions


def lstm_loop(weights, x, state):
    """A long short-term memory as torch documents it."""
    ih, hh, b_ih, b_hh = weights
    h, c = state
    i, f, g, o = (ih @ x + b_ih + hh @ h + b_hh).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def by_the_paper(model, picture, ids):
    """Logits and weights of one caption by the formulas of Xu et al. 2015, one location at a time."""
    a = picture[None]
    for conv, norm in zip(model.encoder.patches, model.encoder.norms):
        a = F.relu(norm(conv(a)))
    locations = [a[0, :, y, x] for y in range(ROWS) for x in range(COLUMNS)]
    locations = [one + where for one, where in zip(locations, model.encoder.added.weight)]
    mean = sum(locations) / len(locations)
    state = [torch.tanh(bridge(mean)) for bridge in model.bridges]
    decoder, lstm = model.decoder, model.config.cell == "lstm"
    weights = [getattr(decoder.rnn, f"{name}_l0") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    logits, maps = [], []
    for i in ids:
        y, h, context = model.embed.weight[i], state[0], mean
        if decoder.attention is not None:
            score = decoder.attention.score
            energies = [
                score.v @ torch.tanh(score.query_to_hidden.weight @ h + score.key_to_hidden.weight @ one)
                for one in locations
            ]
            shares = torch.stack(energies).softmax(0)
            maps.append(shares)
            context = sum(share * one for share, one in zip(shares, locations))
            if model.config.attention == "hard":
                context = locations[int(shares.argmax())]
        context = torch.sigmoid(decoder.gate.weight @ h + decoder.gate.bias) * context
        entered = torch.cat((y, context))
        state = list(lstm_loop(weights, entered, state)) if lstm else [gru_loop(weights, entered, h)]
        said = decoder.to_out.weight @ torch.cat((state[0], context)) + decoder.to_out.bias
        logits.append(model.head(y + said))
    return torch.stack(logits), torch.stack(maps) if maps else None


@pytest.mark.parametrize("attention", ["soft", "hard", "none"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
@torch.no_grad()
def test_captions_equal_the_formulas_of_the_paper(attention, cell):
    model, (pictures, captions) = make(attention=attention, cell=cell), draw_batch()
    found, steps = model(pictures, captions), model.write(pictures, captions)
    for row in range(B):
        logits, maps = by_the_paper(model, pictures[row], captions[row].tolist())
        assert_close(found[row], logits)
        if maps is None:
            assert steps.weights is None
        else:
            assert_close(steps.weights[row], maps)


@pytest.mark.parametrize("attention", ["soft", "hard"])
@torch.no_grad()
def test_a_watch_hears_one_layer_of_words_by_patches(attention):
    model, (pictures, captions) = make(attention=attention), draw_batch()
    with regard.watch(model, queries=list("abcde")) as trace:
        model(pictures, captions)
    [layer] = trace.layers
    assert (layer.name, layer.kind) == ("decoder.attention", "cross")
    assert tuple(layer.weights.shape) == (B, 1, T, ROWS * COLUMNS)
    assert layer.keys[0].grid == (ROWS, COLUMNS)
    assert layer.keys[2].shown[:5] == ("0,0", "0,1", "0,2", "0,3", "1,0")
    assert (layer.queries[1].shown, layer.notes) == (tuple("abcde"), [])
    heard, weights = layer.weights.dense()[:, 0], model.write(pictures, captions).weights
    if attention == "hard":  # what was used: one location each time
        weights = F.one_hot(weights.argmax(-1), ROWS * COLUMNS).to(weights)
    assert_close(heard, weights)


@pytest.mark.parametrize("attention", ["soft", "hard", "none"])
@torch.no_grad()
def test_steps_say_what_the_whole_says_also_after_rows_change(attention):
    model, (pictures, captions) = make(attention=attention), draw_batch()
    steps, wanted = model.begin(pictures), model.write(pictures, captions)
    assert isinstance(steps, DecoderState)
    order, rows = torch.tensor([2, 0, 0, 1]), torch.arange(B)
    for at in range(T):
        if at == 2:
            steps.reorder(order)
            rows = rows[order]
        found = steps(captions[rows, at : at + 1])
        assert_close(found, model.head(wanted.hidden[rows, at]))
    if attention == "none":
        assert steps.attention() is None
    elif attention == "soft":
        assert_close(steps.attention(), wanted.weights[rows, -1])


@torch.no_grad()
def test_beams_find_what_trying_every_caption_finds():
    model = CaptionerConfig(ROWS * STRIDE, COLUMNS * STRIDE, 6, **SIZES).build()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    model = model.double().eval()
    pictures, _ = draw_batch()
    found = beam(model.begin(pictures), B, beams=40, length_penalty=0, limits=Limits(longest=2))
    words = [3, 4, 5]
    every = [[END], *([one, END] for one in words), *([one, two, END] for one in words for two in words)]
    for row in range(B):
        scores = []
        for ids in every:
            logs = model(pictures[row : row + 1], torch.tensor([[BEGIN, *ids[:-1]]]))[0].log_softmax(-1)
            scores.append(float(sum(log[i] for log, i in zip(logs, ids))))
        best = max(range(len(every)), key=scores.__getitem__)
        assert found[row][0].ids == every[best][:-1]
        assert found[row][0].score == pytest.approx(scores[best])


def test_the_loss_is_that_of_a_plain_loop():
    model, (pictures, fed) = make().train(), draw_batch()
    targets = fed.roll(-1, 1)
    targets[:, -1] = END
    targets[1, 3:] = PAD
    loss = caption_loss(model, pictures, fed, targets, smoothing=0.2, coverage=0.3)
    total = plain = 0.0
    for row in range(B):
        logits, maps = by_the_paper(model, pictures[row], fed[row].tolist())
        length = int((targets[row] != PAD).sum())
        for log, i in zip(logits.log_softmax(-1)[:length], targets[row].tolist()):
            total = total - 0.8 * log[i] - 0.2 * log.mean()
            plain = plain - log[i]
        total = total + 0.3 * (1 - maps[:length].sum(0)).square().sum()
    assert_close(loss.sum, total)
    assert_close(loss.nll, plain.detach())
    assert loss.count == int((targets != PAD).sum())
    wanted, found = (torch.autograd.grad(one, list(model.parameters()), allow_unused=True) for one in (total, loss.sum))
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, torch.zeros_like(one) if other is None else other)


def test_hard_attention_learns_where_to_look_by_reward(monkeypatch):
    """The gradient that its draws give, on average, is that of the expected reward, computed over all locations."""
    model, (pictures, _) = make(attention="hard").train(), draw_batch()
    pictures, fed, targets = pictures[:1], torch.tensor([[BEGIN]]), torch.tensor([[7]])
    monkeypatch.setattr(torch, "rand", lambda count, **_: torch.ones(count))  # no picture is mixed
    attention, seen = model.decoder.attention, model.see(pictures)
    rewards = []
    model.decoder.attention = None
    for place in range(ROWS * COLUMNS):  # what it would say, had it looked there
        steps, _ = model.decoder(fed, model.embed.weight, seen._replace(mean=seen.memory[:, place]), seen.state)
        rewards.append(float(model.head(steps.hidden)[0, 0].log_softmax(-1)[7].detach()))
    model.decoder.attention = attention
    weights = attention(seen.state[0][0], seen.memory, seen.keys, True).weights[0]
    expected = (weights * torch.tensor(rewards, dtype=torch.float64)).sum()
    [wanted] = torch.autograd.grad(-expected, attention.score.v)
    many = 6000
    batch = pictures.expand(many, -1, -1, -1), fed.expand(many, -1), targets.expand(many, -1)
    model.baseline.fill_(float(expected.detach()))
    loss = caption_loss(model, *batch, reward=1.0)
    [found] = torch.autograd.grad(loss.sum, attention.score.v)
    assert_close(found / many, wanted, rtol=0.1, atol=0.1 * float(wanted.abs().max()))
    assert float(model.baseline) == pytest.approx(float(expected.detach()), rel=0.05)  # 0.9 of it, and a tenth as drawn


def test_what_no_captioner_can_be_is_refused():
    with pytest.raises(ValueError, match="attention is 'firm'"):
        make(attention="firm")
    with pytest.raises(ShapeError, match="13 × 16 pixels do not split into locations of 4"):
        CaptionerConfig(13, 16, N, **SIZES).build()
    with pytest.raises(ShapeError, match="features are"):
        make(strides=(2, 1))
    model, (pictures, captions) = make(), draw_batch()
    with pytest.raises(ShapeError, match="3 pictures and 2 captions"):
        model(pictures, captions[:2])
