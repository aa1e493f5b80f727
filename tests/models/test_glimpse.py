"""Glimpses against loops over pixels and over pictures, and where gradients flow and where they do not."""

import math

import pytest
import torch
from torch.testing import assert_close

from regard.errors import ShapeError
from regard.models import GlimpseConfig, store
from regard.models.glimpse import GlimpsePath, crop_glimpses
from regard.models.kinds import kind_of
from regard.tasks.glimpse_loss import reward_locations

SIZES = {
    "image_height": 9,
    "image_width": 13,
    "channels": 2,
    "glimpses": 4,
    "glimpse_size": 3,
    "width": 10,
    "labels": 5,
}


def make(**options):
    torch.manual_seed(0)
    return GlimpseConfig(**SIZES | {"glimpse_scales": 2} | options).build().double()


def drawn(b=6):
    return torch.randn(b, 2, 9, 13, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("size", "scales"), [(3, 1), (4, 2), (2, 3)])
def test_the_retina_is_what_loops_over_pixels_give(size, scales):
    pictures = drawn()
    places = torch.tensor([[0.0, 0], [-1, 1], [1, -1], [0.3, -0.7], [-0.9, -0.9], [0.51, 0.99]], dtype=torch.float64)
    seen = crop_glimpses(pictures, places, size, scales)
    assert seen.shape == (6, scales, 2, size, size)
    for i, (down, right) in enumerate(places.tolist()):
        y, x = round((down + 1) / 2 * 9), round((right + 1) / 2 * 13)
        for scale in range(scales):
            step = 2**scale
            top, left = y - size * step // 2, x - size * step // 2
            if size * step % 2 and scale == 0 and scales > 1:
                continue  # of an odd square, the middle of the larger ones says where it lies
            for u in range(size):
                for v in range(size):
                    cells = [
                        pictures[i, :, r, c] if 0 <= r < 9 and 0 <= c < 13 else torch.zeros(2, dtype=torch.float64)
                        for r in range(top + u * step, top + u * step + step)
                        for c in range(left + v * step, left + v * step + step)
                    ]
                    assert_close(seen[i, scale, :, u, v], torch.stack(cells).mean(0))


def test_a_batch_is_its_pictures_one_by_one_and_nothing_is_drawn_where_it_does_not_learn():
    model, pictures = make().eval(), drawn()
    with torch.no_grad():
        path = model(pictures, paths=True)
        assert_close(model(pictures), path.logits, rtol=0, atol=0)
        for i in range(len(pictures)):
            one = model(pictures[i : i + 1], paths=True)
            assert_close(one.logits[0], path.logits[i])
            assert_close(one.locations[0], path.locations[i])
    assert path.locations.shape == (6, 4, 2)
    assert not path.locations[:, 0].any()
    assert path.locations.abs().max() <= 1
    assert not path.log_probs.any()


def test_each_step_is_what_the_formulas_of_the_paper_say():
    model, picture = make(glimpses=2).eval(), drawn(1)
    with torch.no_grad():
        path = model(picture, paths=True)
        state = torch.zeros(10, dtype=torch.float64)
        for place in path.locations[0]:
            seen = crop_glimpses(picture, place[None], 3, 2).flatten()
            glimpse = model.join_seen(model.see(seen).relu()) + model.join_place(model.place(place).relu())
            state = (model.from_state(state) + model.from_glimpse(glimpse.relu())).relu()
        assert_close(model.classifier(state), path.logits[0])
        first = crop_glimpses(picture, torch.zeros(1, 2, dtype=torch.float64), 3, 2).flatten()
        zero = torch.zeros(2, dtype=torch.float64)
        glimpse = (model.join_seen(model.see(first).relu()) + model.join_place(model.place(zero).relu())).relu()
        before = (model.from_state(torch.zeros(10, dtype=torch.float64)) + model.from_glimpse(glimpse)).relu()
        assert_close(path.locations[0, 1], torch.tanh(model.locate(before)))
        assert_close(path.baselines[0, 1], model.expect(before)[0])


def test_locations_get_no_gradient_from_the_class_and_the_state_none_from_locations_and_baselines():
    model = make().train()
    path = model(drawn(), paths=True)
    path.logits.sum().backward()
    assert model.locate.weight.grad is None
    assert model.expect.weight.grad is None
    assert model.see.weight.grad.abs().sum() > 0
    model.zero_grad()
    path = model(drawn(), paths=True)
    (path.log_probs.sum() + path.baselines.sum()).backward()
    assert model.see.weight.grad is None
    assert model.from_state.weight.grad is None
    assert model.locate.weight.grad.abs().sum() > 0
    assert model.expect.weight.grad.abs().sum() > 0


def test_log_probs_are_those_of_torch_and_places_spread_as_they_are_meant_to():
    model = make(glimpses=2, location_deviation=0.2).train()
    torch.nn.init.zeros_(model.locate.weight)
    with torch.no_grad():
        model.locate.bias.copy_(torch.tensor([0.3, -0.2]))
        path = model(drawn(1).expand(4000, -1, -1, -1), paths=True)
    first, second = path.locations.unbind(1)
    assert first.abs().max() <= 1
    assert_close(first.std(0), torch.full((2,), 1 / math.sqrt(3), dtype=torch.float64), atol=0.02, rtol=0)
    mean = torch.tensor([0.3, -0.2], dtype=torch.float64).tanh()
    assert_close(second.mean(0), mean, atol=0.02, rtol=0)
    assert_close(second.std(0), torch.full((2,), 0.2, dtype=torch.float64), atol=0.02, rtol=0)
    assert_close(path.log_probs[:, 1], torch.distributions.Normal(mean, 0.2).log_prob(second).sum(-1))


def test_the_reward_is_that_of_a_loop_and_its_gradient_reaches_what_it_should():
    torch.manual_seed(3)
    logits = torch.randn(4, 5, dtype=torch.float64)
    labels = torch.tensor([int(logits[0].argmax()), 1, 2, -100])
    labels[1] = (logits[1].argmax() + 1) % 5
    log_probs, baselines = (torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    loss = reward_locations(GlimpsePath(logits, torch.zeros(4, 3, 2).double(), log_probs, baselines), labels, 0.3)
    total = 0.0
    for i in range(3):
        reward = float(int(logits[i].argmax()) == int(labels[i]))
        for t in (1, 2):
            total -= 0.3 * float(log_probs[i, t].detach()) * (reward - float(baselines[i, t].detach()))
            total += (reward - float(baselines[i, t].detach())) ** 2 / 2
    assert float(loss.detach()) == pytest.approx(total)
    into_log_probs, into_baselines = torch.autograd.grad(loss, (log_probs, baselines))
    reward = (logits.argmax(-1) == labels).double()[:, None]
    counts = torch.tensor([1, 1, 1, 0]).double()[:, None]
    assert_close(into_log_probs[:, 1:], (-0.3 * (reward - baselines) * counts)[:, 1:].detach())
    assert_close(into_baselines[:, 1:], (-(reward - baselines) * counts)[:, 1:].detach())
    assert not into_log_probs[:, 0].any()


def test_the_policy_gradient_is_the_derivative_of_the_expected_reward():
    """Of one choice along a line: the mean of many estimates against the reward integrated over all places."""
    deviation, mean = 0.5, torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(0)
    drawn = (mean + deviation * torch.randn(400_000, dtype=torch.float64)).detach()
    reward = (drawn > 0).double()  # right where it looks to the right of the middle
    log_probs = -((drawn - mean) / deviation).square() / 2
    logits = torch.stack((1 - reward, reward), 1)
    path = GlimpsePath(
        logits, torch.zeros(len(drawn), 2, 2), torch.stack((0 * log_probs, log_probs), 1),
        torch.full((len(drawn), 2), 0.6, dtype=torch.float64),
    )  # fmt: skip
    loss = reward_locations(path, torch.ones(len(drawn), dtype=torch.int64), 1.0) / len(drawn)
    (found,) = torch.autograd.grad(loss, mean)
    density = math.exp(-((0.2 / deviation) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi))  # d P(l > 0) / d mean
    assert float(-found) == pytest.approx(density, rel=0.01)


def test_it_is_stored_and_read_and_what_cannot_be_is_refused(tmp_path):
    model = make().float().eval()
    store.write(tmp_path, model, model.config, {})
    again = store.read(tmp_path)
    assert kind_of(again).name == "glimpse"
    with torch.no_grad():
        assert_close(again(drawn().float()), model(drawn().float()), rtol=0, atol=0)
    for options, said in (
        ({"glimpses": 0}, "glimpses is 0"),
        ({"glimpse_scales": 9}, "far more than a picture"),
        ({"location_deviation": 0.0}, "give a number above 0"),
    ):
        with pytest.raises(ShapeError, match=said):
            make(**options)
    with pytest.raises(ShapeError, match="but this model reads"):
        model(torch.zeros(2, 3, 9, 13))
