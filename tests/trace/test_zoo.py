"""Every architecture of the zoo, watched: the same model, and the right maps, each verified or refused by name.

`REGARD_WRITE=1 pytest tests/trace/test_zoo.py` writes docs/architectures.md anew.
"""

import os

import pytest
import torch
from torch import Tensor

from regard.errors import WatchError
from regard.trace.watch import watch
from tests.trace.look import Look, by_hand, look, real_rows, tensors
from tests.trace.table import table
from tests.trace.zoo import ZOO

pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore:Support for mismatched key_padding_mask")

FAMILIES = {"encoder", "decoder", "encoder-decoder", "vision", "audio", "multimodal"}
HOW = {"default": None, "eager": "eager"}


@pytest.fixture(scope="module", params=[f"{name} by {how}" for name in ZOO for how in HOW])
def seen(request) -> Look:
    """Each architecture, by the implementation it takes by itself and by eager; its tests run one after the other."""
    name, _, how = request.param.rpartition(" by ")
    return look(name, HOW[how])


def test_the_zoo_holds_enough_and_every_family():
    assert len(ZOO) >= 62
    assert {species.family for species in ZOO.values()} == FAMILIES
    assert sum(bool(species.refused) for species in ZOO.values()) < 16


def test_the_watched_model_is_the_same_model(seen):
    assert len(seen.plain) == len(seen.watched) > 0
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(seen.watched, seen.plain))
    assert torch.equal(*seen.random)


@pytest.mark.parametrize("name", sorted(ZOO.keys() - {"Reformer", "RWKV"}))  # these two learn in training mode only
def test_gradients_of_the_watched_model_are_the_same(name):
    model, inputs = ZOO[name].build()

    def gradients() -> list[Tensor | None]:
        model.zero_grad()
        torch.manual_seed(1)
        loss = sum(x.square().sum() for x in tensors(model(**inputs)) if x.requires_grad)
        loss.backward()
        return [weight.grad for weight in model.parameters()]

    plain = gradients()
    try:
        with watch(model):
            watched = gradients()
    except WatchError:
        assert ZOO[name].refused
    assert any(gradient is not None for gradient in plain)
    for ours, theirs in zip(watched, plain, strict=True):
        assert ours is theirs is None or torch.equal(ours, theirs)


def test_every_attention_is_seen_once_or_refused_by_name(seen):
    species = seen.species
    kinds, shapes = [layer.kind for layer in seen.layers], [layer.weights.shape for layer in seen.layers]
    assert len(kinds) == len(species.seen), f"{len(kinds)} maps, {len(species.seen)} wanted: {seen.layers}"
    assert len({layer.name for layer in seen.layers}) == len(kinds)
    if species.refused:
        assert seen.refused
        assert not set(seen.refused) & {layer.name for layer in seen.layers}
    else:
        assert not seen.refused
    if len(species.seen) == species.own + species.cross:
        assert kinds.count("cross") == species.cross, kinds
        assert all(q != k for kind, (*_, q, k) in zip(kinds, shapes) if kind == "unknown"), kinds


def test_a_map_that_is_computed_is_the_arithmetic_of_its_q_and_k(seen):
    for layer in seen.layers:
        wanted = by_hand(layer)
        if wanted is not None:
            close(layer, layer.weights.dense(), wanted, real_rows(layer, seen.inputs), 1e-6)


def test_a_map_is_what_the_eager_model_returns(seen):
    if seen.reference is None:
        assert seen.species.silent or not seen.layers
        return
    if seen.species.apart and not seen.eager:
        return
    for layer, call in zip(seen.layers, seen.species.seen, strict=True):
        ours, theirs = layer.weights.dense(), seen.reference[call]
        if theirs.shape[1] == 1:  # a model that knows only the mean of its heads
            ours = ours.mean(1, keepdim=True)
        rows = torch.tensor(True) if seen.eager else real_rows(layer, seen.inputs)
        close(layer, ours, theirs, rows, 1e-4)


def close(layer, ours: Tensor, theirs: Tensor, rows: Tensor, limit: float) -> None:
    """Raise where a weight in one of these rows, (b, h, q), is further off; NaN is off."""
    assert ours.shape == theirs.shape, f"{layer.name}: {tuple(ours.shape)}, {tuple(theirs.shape)} wanted"
    off = (ours - theirs).abs().where(rows.expand(ours.shape[:-1])[..., None], 0.0).nan_to_num(torch.inf)
    if not bool((off <= limit).all()):
        b, h, q, k = (int(i) for i in torch.unravel_index(off.argmax(), off.shape))
        pytest.fail(
            f"{layer.name}[{b}, {h}, {q}, {k}] is {ours[b, h, q, k]:.7f}, but {theirs[b, h, q, k]:.7f} was wanted "
            f"({layer.weights.kind} by the {layer.door} door)"
        )


def test_every_map_is_verified_or_refused(seen):
    assert {proof.name for proof in seen.proofs} >= {layer.name for layer in seen.layers}
    doubtful = [str(proof) for proof in seen.proofs if proof.status not in ("verified", "refused")]
    assert not doubtful, doubtful
    for path, why in seen.refused.items():
        assert len(why) > 20, f"{path} was refused, but not in words: {why!r}"


def test_nothing_is_said_to_be_missed_where_all_is_heard(seen):
    assert seen.species.refused or not seen.proofs.missed, seen.proofs.missed


def test_the_page_of_architectures_is_what_is_seen(repository):
    page = repository / "docs" / "architectures.md"
    found = table([look(name) for name in ZOO])
    if os.environ.get("REGARD_WRITE"):
        page.write_text(found, encoding="utf-8")
    committed = page.read_text(encoding="utf-8") if page.is_file() else ""
    assert committed == found, "write it anew: REGARD_WRITE=1 pytest tests/trace/test_zoo.py"
