"""The lean decoder gives what the modules give, however beams move; and steps aside where they must run."""

import re

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import regard
from regard.layers import listen
from regard.models import T5Config, TranslatorConfig
from regard.models.lean.beam_cache import LEAST, BeamCache
from regard.models.lean.obstacles import find_translator_obstacle
from regard.models.lean.translator_state import LeanTranslatorState
from regard.models.pointer_generator import PointerGeneratorConfig
from regard.models.translator_state import TranslatorState
from tests.child import in_child
from tests.models.causal_models import shaken

V, N, M, H, B, S, T = 23, 29, 24, 3, 5, 7, 9
SIZES = {"width": M, "heads": H, "layers": 1, "decoder_layers": 3, "hidden": 20, "context": 60}
CONFIGS = {
    **{
        f"{order} {positions}": TranslatorConfig(V, N, **SIZES, order=order, positions=positions)
        for order, positions in (
            ("post", "sinusoid"), ("pre", "sinusoid"), ("post", "learned"), ("pre", "rotary"), ("pre", "none"),
        )
    },
    "gated": TranslatorConfig(V, N, **SIZES, norm="rms", activation="swiglu", bias=False, tied=False),
    "gelu": TranslatorConfig(N, N, **SIZES, order="post", activation="gelu", shared=True, dropout=0.2),
    "no pointer": PointerGeneratorConfig(N, N, **SIZES, shared=True, copy=False),
}  # fmt: skip
NEAR = {"rtol": 1e-11, "atol": 1e-11}


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS)
def model(request):
    return shaken(request.param.build())


def make(name="post sinusoid"):
    return shaken(CONFIGS[name].build())


def draw_source():
    """Sources of several lengths, padded with 0 and ended by 2."""
    source = torch.randint(3, V, (B, S), generator=torch.Generator().manual_seed(4))
    for row, length in enumerate([S, 4, 6, 2, 5]):
        source[row, length - 1], source[row, length:] = 2, 0
    return source


def draw_target(rows, length=T, seed=8):
    return torch.randint(3, V, (rows, length), generator=torch.Generator().manual_seed(seed))


def both(model, source=None):
    """The lean state and the plain one of the same sources."""
    lean = model.begin(draw_source() if source is None else source)
    assert isinstance(lean, LeanTranslatorState)
    caches = model.decoder.make_caches(lean.memory)
    plain = TranslatorState(model, lean.source, lean.memory, caches, lean.mask, lean.lengths)
    return lean, plain


def step(lean, plain, ids):
    assert_close(lean(ids), plain(ids), **NEAR)
    assert_close(lean.attention(), plain.attention(), **NEAR)


def move(lean, plain, index):
    for state in (lean, plain):
        state.reorder(torch.tensor(index))
    assert lean.attention() is None or torch.allclose(lean.attention(), plain.attention(), **NEAR)


@torch.no_grad()
def test_every_step_equals_that_of_the_modules(model):
    lean, plain = both(model)
    assert lean.attention() is None
    for ids in draw_target(B).split([1, 1, 3, 1, 2, 1], 1):
        step(lean, plain, ids)
    assert not lean.is_plain
    assert_close(lean.hidden(draw_target(B, 1)), plain.hidden(draw_target(B, 1)), **NEAR)
    assert lean.head[0] is plain.head[0]


MOVES = {
    "beams": [
        [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4], [2, 0, 0, 3, 3, 5, 8, 7, 6, 9, 9, 9, 12, 14, 13],
        [1, 0, 1, 4, 3, 3, 6, 6, 6, 10, 11, 9, 13, 13, 14], [0, 2, 2, 7, 8, 8, 14, 12, 13], [3, 3, 4, 8, 6, 7],
        [5, 4, 3],
    ],
    "single rows leave": [[0, 2, 3, 4], [1, 3], [1]],
    "other numbers of beams": [[0, 0, 1, 1, 3, 3], [1, 3, 4], [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], [2, 1, 5, 5, 8, 9]],
    "beams apart": [[3, 0, 0, 4, 1, 1, 2], [1, 0, 2, 3, 5, 4, 6], [6, 5, 0, 3], [2, 2, 1], [0, 2]],
    "texts change places": [[4, 4, 2, 2, 0, 0], [5, 4, 1, 1, 2, 3], [2, 3, 0, 0, 4, 4]],
    "uneven, then even": [[0, 0, 1], [0, 1, 2, 2], [1, 0, 3, 2]],
}  # fmt: skip


@torch.no_grad()
@pytest.mark.parametrize("begun", [False, True], ids=["before the first step", "after it"])
@pytest.mark.parametrize("moves", MOVES.values(), ids=MOVES)
def test_rows_change_places_as_in_the_modules(model, moves, begun):
    lean, plain = both(model)
    if begun:
        step(lean, plain, draw_target(B, 1))
    for seed, index in enumerate(moves):
        move(lean, plain, index)
        step(lean, plain, draw_target(len(index), 2, seed))
    assert not lean.is_plain


@torch.no_grad()
@pytest.mark.parametrize("width", [1, 3])
def test_room_is_made_for_long_texts(width):
    lean, plain = both(make("pre rotary"))
    move(lean, plain, sorted([*range(B)] * width))
    generator = torch.Generator().manual_seed(6)
    for at in range(LEAST + 9):
        step(lean, plain, draw_target(B * width, 1, at))
        parents = torch.randint(width, (B, width), generator=generator) + width * torch.arange(B)[:, None]
        move(lean, plain, parents.flatten().tolist())
    assert lean.own.memory.shape[-2] > LEAST * width


def test_keys_stay_where_they_are_while_beams_change_places():
    cache = BeamCache(2, layers=1, heads=1, like=torch.zeros(0, 4))
    cache.reorder(torch.tensor([0, 0, 1, 1]), 2)
    texts = [[] for _ in range(4)]
    for at, parents in enumerate([[1, 0, 2, 2], [0, 0, 3, 2], [1, 1, 2, 3]]):
        hidden, written = cache.add_slots(), torch.randn(4, 1, 1, 4)
        cache.write(0, written, -written)
        place = cache.memory.data_ptr()
        assert (hidden == 0).sum() == 4 * (at + 1)
        cache.reorder(torch.tensor(parents), 2)
        assert cache.memory.data_ptr() == place
        texts = [[*texts[row], written[row, 0]] for row in parents]
    keys, values = cache.find_rows(0)
    wanted = torch.stack([torch.stack(text, 1) for text in texts])
    assert_close(keys, wanted)
    assert_close(values, -wanted)


@pytest.mark.parametrize("way", ["beam", "coverage", "sure", "greedy", "sample", "repetition"])
def test_every_way_of_decoding_says_the_same_in_float32(model, way):
    model.float()
    limits = regard.Limits(longest=[9, 4, 7, 0, 12], shortest=0)
    options = {
        "coverage": {"coverage_penalty": 0.3},
        "sure": {"stop": "sure", "beams": 7},
        "sample": {"generator": torch.Generator().manual_seed(4)},
        "repetition": {"repetition_penalty": 1.3},
    }
    decode = {"greedy": regard.greedy, "sample": regard.sample}.get(way, regard.beam)
    texts = []
    with torch.inference_mode():
        for state in both(model):
            options["sample"]["generator"].manual_seed(4)
            found = decode(state, B, limits=limits, **options.get(way, {}))
            texts.append([one[0].ids if isinstance(one, list) else one.ids for one in found])
    assert texts[0] == texts[1]


def test_steps_in_inference_mode_go_on_outside_of_it():
    model, ids = make(), draw_target(2 * B, 1)
    with torch.inference_mode():
        lean, plain = both(model)
        move(lean, plain, sorted([*range(B)] * 2))
        step(lean, plain, ids)
        move(lean, plain, [1, 0, *range(2, 2 * B)])
    with torch.no_grad():
        step(lean, plain, ids)
        move(lean, plain, [0, 1, 5, 4])
        step(lean, plain, ids[:4])
    with torch.inference_mode():
        step(lean, plain, ids[:4])
    assert not lean.is_plain


@torch.no_grad()
def test_what_is_written_into_the_weights_is_read_by_the_next_step(model):
    lean, plain = both(model)
    step(lean, plain, draw_target(B, 1))
    for parameter in model.parameters():
        parameter.mul_(1.1)
    step(lean, plain, draw_target(B, 1, seed=3))
    model.load_state_dict({name: tensor * 0.9 for name, tensor in model.state_dict().items()})
    step(lean, plain, draw_target(B, 1, seed=5))
    assert not lean.is_plain


class Doubled(nn.Linear):
    """A linear layer that somebody replaced."""

    def forward(self, x):
        return 2 * super().forward(x)


def leave_eval(model):
    model.train()


def adapt(model):
    old = model.decoder.blocks[1].cross_attention.to_q
    model.decoder.blocks[1].cross_attention.to_q = Doubled(old.in_features, old.out_features).double().eval()


def extend(model):
    model.decoder.__class__ = type("OtherDecoder", (type(model.decoder),), {})


def hook(model):
    model.decoder.blocks[2].feed_forward.register_forward_hook(lambda module, args, out: 2 * out)


def hook_before(model):
    model.decoder.register_forward_pre_hook(lambda module, args: None)


def patch(model):
    forward = model.decoder.blocks[0].forward
    model.decoder.blocks[0].forward = lambda *args, **more: 2 * forward(*args, **more)


def halve(model):
    model.half()


def soften(model):
    model.decoder.blocks[0].cross_attention.softcap = 3.0


def turn_round(model):
    model.decoder.blocks[1].around_feed_forward.order = "pre"


OBSTACLES = {
    leave_eval: "in training mode",
    adapt: r"decoder\.blocks\.1\.cross_attention\.to_q is a Doubled of its own",
    extend: "decoder is a OtherDecoder of its own",
    hook: "there are hooks on its modules",
    hook_before: "there are hooks on its modules",
    patch: r"decoder\.blocks\.0 is a DecoderBlock of its own",
    soften: "its attention is not the scaled dot product alone",
    turn_round: "its blocks differ",
}


@pytest.mark.parametrize("change", OBSTACLES, ids=lambda change: change.__name__)
def test_what_stands_in_the_way_is_said_and_the_modules_run(change):
    model = make()
    assert find_translator_obstacle(model) is None
    change(model)
    reason = find_translator_obstacle(model)
    assert reason is not None
    assert re.search(OBSTACLES[change], reason)
    assert type(model.begin(draw_source())) is TranslatorState


def test_weights_of_another_kind_are_an_obstacle():
    model = make()
    halve(model)
    assert find_translator_obstacle(model) == "its weights are not all float32, or all float64, on the processor"


def test_other_models_scores_and_positions_are_left_to_the_modules():
    source = draw_source()
    sizes = {"width": M, "heads": H, "layers": 1}
    for config in (
        TranslatorConfig(V, N, **sizes, positions="alibi"),
        TranslatorConfig(V, N, **sizes, attention="additive"),
        TranslatorConfig(V, N, **sizes, attention="dot"),
        T5Config(V, **sizes),
    ):
        assert type(config.build().eval().begin(source)) is TranslatorState


def test_whoever_watches_edits_or_swaps_gets_the_modules():
    model, source = make(), draw_source()
    for listening in (regard.watch(model), regard.edit(model), listen()):
        with listening, torch.no_grad():
            state = model.begin(source)
            assert type(state) is TranslatorState
            state(draw_target(B, 1))
    assert isinstance(model.begin(source), LeanTranslatorState)


def take_gradients(model):
    torch.set_grad_enabled(True)


def replace_weight(model):
    model.decoder.blocks[1].self_attention.to_q.weight.data = (
        model.decoder.blocks[1].self_attention.to_q.weight.data * 2
    )


def replace_parameter(model):
    model.decoder.blocks[1].self_attention.to_q.bias = nn.Parameter(torch.ones(M, dtype=torch.float64))


def replace_table(model):
    model.target_embed.weight.data = model.target_embed.weight.data.flip(0)


@torch.no_grad()
@pytest.mark.parametrize(
    "change",
    [hook, hook_before, leave_eval, adapt, take_gradients, replace_weight, replace_parameter, replace_table],
)
@pytest.mark.parametrize(
    "moves", [[], [[0, 0, 1, 1, 2, 2, 3, 3, 4, 4]], MOVES["beams"][:2]], ids=["rows", "new", "beams"]
)
def test_a_change_in_the_middle_is_noticed(change, moves):
    model = make()
    lean, plain = both(model)
    step(lean, plain, draw_target(B, 1))
    for index in moves:
        move(lean, plain, index)
        if index is not moves[-1]:
            step(lean, plain, draw_target(len(index), 1))
    change(model)
    ids = draw_target(len(lean.rows), 1, seed=3)
    assert_close(lean(ids), plain(ids), **NEAR)
    assert lean.is_plain
    torch.set_grad_enabled(False)
    order = [*range(len(lean.rows))][::-1]
    move(lean, plain, order)
    step(lean, plain, ids)


@torch.no_grad()
def test_whoever_comes_later_gets_the_modules_from_then_on():
    model = make()
    lean, plain = both(model)
    for index in MOVES["beams"][:3]:
        step(lean, plain, draw_target(len(lean.rows), 1))
        move(lean, plain, index)
    ids = draw_target(len(lean.rows), 1)
    with regard.watch(model) as trace:
        step(lean, plain, ids)
    assert lean.is_plain
    assert any(layer.name.startswith("decoder") for layer in trace.layers)
    step(lean, plain, ids)


@in_child
def test_autocast_is_left_to_the_modules():
    lean, plain = both(make())
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        for at in range(2):
            ids = draw_target(B, 2)[:, at : at + 1]
            assert_close(lean(ids), plain(ids), rtol=0, atol=0)
    assert lean.is_plain


def test_gradients_reach_the_weights():
    model = make()
    state = model.begin(draw_source())
    state(draw_target(B, 2)).square().sum().backward()
    assert all(one.grad is not None for name, one in model.named_parameters() if "to_k.bias" not in name)


@torch.no_grad()
def test_what_cannot_be_read_is_refused_in_words():
    lean, plain = both(make("post learned"))
    for state in (lean, plain):
        state(draw_target(B, 58))
        with pytest.raises(regard.errors.PositionError, match="positions"):
            state(draw_target(B, 3))
    with pytest.raises(regard.errors.CacheError, match="3 rows came, but 5 are being written"):
        lean(draw_target(3, 1))


@pytest.mark.parametrize("way", [regard.greedy, regard.beam])
def test_who_watches_hears_one_pass_over_the_texts(way):
    model, source = make(), draw_source()
    state = model.begin(source)
    assert isinstance(state, LeanTranslatorState)
    with regard.watch(model) as trace:
        found = way(state, B, limits=regard.Limits(longest=4))
    texts = [one[0].ids if isinstance(one, list) else one.ids for one in found]
    rows = [torch.tensor([1, *text]) for text in texts]
    with regard.watch(model) as wanted, torch.no_grad():
        model(source, nn.utils.rnn.pad_sequence(rows, batch_first=True))
    assert len(trace.runs) == 1
    for mine, right in zip(trace.layers, wanted.layers, strict=True):
        assert_close(mine.weights.dense(), right.weights.dense(), rtol=0, atol=0)
