"""Several maps in one call of a module, as in a loop over heads: each is heard; parts and factors of a map are not."""

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

import regard
from regard.errors import WatchError
from tests.trace.change.helpers import under
from tests.trace.watched import watched

B, N, HEADS, E = 2, 7, 3, 5
M = HEADS * E


class Projected(nn.Module):
    """Queries, keys and values of the input; `mix` of a subclass is written by hand, and keeps what met the values."""

    num_heads = HEADS

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(M, M) for _ in range(4))
        self.met = []

    def forward(self, x):
        self.met = []
        return self.out(self.mix(self.q(x) * 3, self.k(x), self.v(x)))

    def meet(self, weights, values):
        self.met.append(weights.detach().clone())
        return weights @ values


class LoopOverHeads(Projected):
    def mix(self, q, k, v):
        parts = [slice(E * head, E * head + E) for head in range(HEADS)]
        return torch.cat([self.meet((q[..., at] @ k[..., at].mT).softmax(-1), v[..., at]) for at in parts], -1)


class BothDirections(Projected):
    def mix(self, q, k, v):
        q, k, v = (x.unflatten(-1, (HEADS, E)).transpose(1, 2) for x in (q, k, v))
        there, back = self.meet((q @ k.mT).softmax(-1), v), self.meet((k @ q.mT).softmax(-1), v)
        return (there - back).transpose(1, 2).flatten(2)


class Chunks(Projected):
    """Queries in chunks of as many as there are texts: parts of one map, whose rows are not the first positions."""

    def mix(self, q, k, v):
        return torch.cat([self.meet((some @ k.mT).softmax(-1), v) for some in q.split(B, 1)], 1)


class Factors(Projected):
    """Three softmaxes of all positions, of which one meets values, as in Nystromformer with as many landmarks."""

    def mix(self, q, k, v):
        first, second, third = ((x @ y.mT).softmax(-1) for x, y in ((q, k), (q, q), (k, k)))
        return first @ (second @ self.meet(third, v))


class Left(Projected):
    """A map, and a softmax that weighs something else."""

    def mix(self, q, k, v):
        mixed = self.meet((q @ k.mT).softmax(-1), v)
        return mixed * (k @ q.mT).softmax(-1).amax(-1, keepdim=True)


@pytest.fixture
def x():
    return torch.randn(B, N, M)


@pytest.mark.parametrize(("kind", "layers"), [(LoopOverHeads, 3), (BothDirections, 2)])
@torch.no_grad()
def test_each_map_is_a_layer_with_the_weights_that_met_the_values(kind, layers, x):
    torch.manual_seed(0)
    model = kind().eval()
    plain = model(x)
    with regard.watch(model) as trace:
        assert torch.equal(model(x), plain)
    name = kind.__name__
    assert [layer.name for layer in trace.layers] == [name, *(f"{name}#{n}" for n in range(2, layers + 1))]
    assert trace.verify()
    for layer, met in zip(trace.layers, model.met, strict=True):
        assert_close(layer.weights.dense(), met.view(B, -1, N, N), rtol=0, atol=0)


@torch.no_grad()
def test_as_many_texts_as_heads_are_not_taken_for_heads():
    model, x = LoopOverHeads().eval(), torch.randn(HEADS, N, M)
    with regard.watch(model) as trace:
        model(x)
    assert [tuple(layer.weights.shape) for layer in trace.layers] == [(HEADS, 1, N, N)] * HEADS
    assert trace.verify()


@pytest.mark.parametrize("kind", [Chunks, Factors, Left])
@torch.no_grad()
def test_parts_and_factors_are_never_verified_in_silence(kind, x):
    model = kind().eval()
    with regard.watch(model) as trace:
        model(x)
    assert not trace.verify()
    told = [layer.weights.dense() for layer in trace.layers]
    assert len(told) <= (1 if kind is Left else 0)
    assert all(torch.equal(one, met.view(one.shape)) for one, met in zip(told, model.met))


@torch.no_grad()
def test_an_edit_reaches_each_of_them(x):
    model = LoopOverHeads().eval()
    with regard.edit(model) as e:
        e.mute("LoopOverHeads#2")
        found = model(x)
    model.v.weight[E : 2 * E] = 0
    model.v.bias[E : 2 * E] = 0
    assert_close(found, model(x))


def test_an_edit_of_a_factor_is_refused(x):
    with torch.no_grad(), pytest.raises(WatchError, match="softmax"):
        under(Factors().eval(), lambda e: e.mute(), x)


class OneFile(nn.Module):
    """A whole model in one module: two layers of attention in one call, which was given ids."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.layers = nn.Embedding(20, 8), nn.ModuleList(nn.Linear(8, 24) for _ in range(2))

    def maps(self, x: Tensor) -> list[Tensor]:
        x, found = self.embed(x), []
        for layer in self.layers:
            q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in layer(x).chunk(3, -1))
            found.append((q @ k.mT).softmax(-1))
            x = x + (found[-1] @ v).transpose(1, 2).flatten(2)
        return found

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for layer in self.layers:
            q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in layer(x).chunk(3, -1))
            x = x + ((q @ k.mT).softmax(-1) @ v).transpose(1, 2).flatten(2)
        return x


def test_layers_of_a_model_in_one_module_are_maps_of_their_own() -> None:
    torch.manual_seed(0)
    model, ids = OneFile(), torch.randint(20, (3, 7))
    with torch.no_grad():
        trace = watched(model, ids)
        wanted = model.maps(ids)
    assert [layer.name for layer in trace.layers] == ["OneFile", "OneFile#2"]
    for layer, weights in zip(trace.layers, wanted, strict=True):
        assert_close(layer.weights.dense(), weights)
    assert trace.verify(), trace.verify()


class OneMap(nn.Module):
    """Two layers in one call that was given features of a picture, (b, c, rows, columns)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 24) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(2).mT
        for layer in self.layers:
            q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in layer(x).chunk(3, -1))
            x = x + ((q @ k.mT).softmax(-1) @ v).transpose(1, 2).flatten(2)
        return x


def test_maps_over_all_places_of_a_picture_stand_alone() -> None:
    with torch.no_grad():
        trace = watched(OneMap(), torch.randn(3, 8, 5, 4))
    assert [tuple(layer.weights.shape) for layer in trace.layers] == [(3, 2, 20, 20)] * 2
    assert trace.verify(), trace.verify()
