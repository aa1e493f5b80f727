"""Heads, rows and the residual stream from another run, and hooks of one's own, beside torch's hooks on the modules."""

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.errors import WatchError
from tests.trace.residual.models import BLOCKS, HEADS, MLP, OUT, WORDS, B, N, build, draw_ids, hear, logits_of

NAMES = ["gpt2", "llama", "by hand"]


def other_ids():
    return torch.randint(WORDS, (B, N), generator=torch.Generator().manual_seed(11))


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_heads_patched_at_some_positions_are_those_of_the_other_run(name):
    model, ids, other = build(name), draw_ids(), other_ids()
    out = model.get_submodule(f"{BLOCKS[name]}.1.{OUT[name]}")
    with hear(out) as heard:
        model(other)
    theirs = heard[0][0]
    size = theirs.shape[-1] // HEADS
    mine = slice(2 * size, 3 * size)

    def replace(_, given):
        x = given[0].clone()
        x[:, [1, N - 1], mine] = theirs[:, [1, N - 1], mine]
        return (x,)

    handle = out.register_forward_pre_hook(replace)
    wanted = logits_of(model(ids))
    handle.remove()
    with regard.watch(model) as trace:
        model(other)
    where = f"{BLOCKS[name]}.1"
    for source in (trace, (other,)):
        with regard.edit(model) as e:
            e.patch(where, heads=2, source=source, queries=[1, -1])
            assert_close(logits_of(model(ids)), wanted)
            effect = e.run(ids)
        assert_close(effect.after, wanted)
        assert float(effect.kl[:, -1].min()) > 0


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_the_residual_stream_and_mlps_are_patched_and_hooked_where_their_modules_give_them(name):
    model, ids, other = build(name), draw_ids(), other_ids()
    path = f"{BLOCKS[name]}.1"
    block, mlp = model.get_submodule(path), model.get_submodule(f"{path}.{MLP[name]}")
    with hear(block) as heard:
        model(other)
    theirs = heard[0][1]

    def replace(_, given, out):
        x = (out[0] if isinstance(out, tuple) else out).clone()
        x[:, 3] = theirs[:, 5]
        return (x, *out[1:]) if isinstance(out, tuple) else x

    handle = block.register_forward_hook(replace)
    wanted = logits_of(model(ids))
    handle.remove()
    handle = mlp.register_forward_hook(lambda _, given, out: out * 2)
    doubled = logits_of(model(ids))
    handle.remove()
    with regard.edit(model) as e:
        e.patch_residual(path, source=(other,), at=3, source_at=5)
        assert_close(logits_of(model(ids)), wanted)
    seen = []
    with regard.edit(model) as e:
        e.hook(f"{path}.{MLP[name]}", lambda x: seen.append(x.shape) or x * 2, part="mlp")
        assert_close(logits_of(model(ids)), doubled)
    assert seen == [(B, N, theirs.shape[-1])]
    with regard.edit(model) as e:
        e.hook(path, lambda mix: seen.append(mix.shape), heads=[0, 3], at=[2])
        assert torch.equal(logits_of(model(ids)), logits_of(model(ids)))
    assert seen[1][:3] == (B, 2, 1)


CANNOT = {
    "name as many": lambda e, ids: e.patch("h.0", heads=1, source=(ids,), queries=[1, 2], source_queries=[3]),
    "no module is called": lambda e, ids: e.patch_residual("h.9", source=(ids,)),
    "return a tensor of that shape": lambda e, ids: e.hook("h.0", lambda x: x[:1], part="residual"),
}


@pytest.mark.parametrize("why", CANNOT)
@torch.no_grad()
def test_what_cannot_be_patched_is_said(why):
    model, ids = build("gpt2"), draw_ids()

    def edit_and_run():
        with regard.edit(model) as e:
            CANNOT[why](e, ids)
            model(ids)

    with pytest.raises(WatchError, match=why):
        edit_and_run()
    assert all("forward" not in module.__dict__ for module in model.modules())
