"""The lean loop gives what the modules give: every family, batches, windows; and steps aside where they must run."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import regard
from regard.layers import listen
from regard.models.causal_state import CausalState
from regard.models.lean.obstacles import find_obstacle
from regard.models.lean.state import LeanState
from tests.models.causal_models import CONFIGS, draw_ids, shaken

ROWS = [[3, 1, 4, 1, 5, 9, 2, 6], [5, 3], [8, 9, 7, 9, 3]]
LEAN = {name: config for name, config in CONFIGS.items() if "alibi" not in str(config)}
ENDLESS = {name: config for name, config in LEAN.items() if "learned" not in name and "gpt2" not in name}
NEAR = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture(params=LEAN.values(), ids=LEAN)
def model(request):
    return shaken(request.param.build())


@pytest.fixture(params=ENDLESS.values(), ids=ENDLESS)
def endless(request):
    return shaken(request.param.build())


def both(model, prompt, **options):
    lean = model.begin(prompt, engine="lean", **options)
    plain = model.begin(prompt, engine="plain", **options)
    assert isinstance(lean, LeanState)
    assert isinstance(plain, CausalState)
    return lean, plain


@torch.no_grad()
def compare(lean, plain, prompt, parts):
    first = (lean.take_prompt(len(prompt), steps=1), plain.take_prompt(len(prompt), steps=1))
    assert_close(lean(first[0]), plain(first[1]), **NEAR)
    for ids in parts:
        assert_close(lean(ids), plain(ids), **NEAR)
    assert not lean.is_plain


@torch.no_grad()
def test_every_step_equals_that_of_the_modules(model):
    prompt, after = draw_ids(4, 9), draw_ids(4, 12, seed=8)
    compare(*both(model, prompt), prompt, after.split([1, 1, 3, 1, 1, 4, 1], 1))


@torch.no_grad()
@pytest.mark.parametrize("rows", [1, 2, 37])
def test_few_and_many_rows_equal_those_of_the_modules(rows):
    for name in ("llama biases", "gpt2", "mistral"):
        model, prompt = shaken(CONFIGS[name].build()), draw_ids(rows, 4)
        compare(*both(model, prompt), prompt, draw_ids(rows, 3, seed=8).split(1, 1))


@torch.no_grad()
def test_rows_of_different_lengths_equal_those_of_the_modules(model):
    compare(*both(model, ROWS), ROWS, draw_ids(3, 12).split([1, 1, 3, 1, 1, 4, 1], 1))


@torch.no_grad()
@pytest.mark.parametrize("sinks", [0, 2], ids=["no sinks", "sinks"])
@pytest.mark.parametrize("length", [3, 13], ids=["short prompt", "longer than the window"])
def test_a_window_wraps_around_as_in_the_modules(endless, sinks, length):
    prompt, after = draw_ids(3, length), draw_ids(3, 25, seed=8)
    compare(*both(endless, prompt, window=6, sinks=sinks), prompt, after.split([1, 1, 5, 1, 9, *[1] * 8], 1))


@torch.no_grad()
def test_rows_of_different_lengths_in_a_window_equal_those_of_the_modules(endless):
    compare(*both(endless, ROWS, window=4), ROWS, draw_ids(3, 14).split([1, 1, 3, 1, 1, 6, 1], 1))


@torch.no_grad()
def test_rows_change_places_as_in_the_modules(model):
    lean, plain = both(model, ROWS)
    for index in (torch.tensor([2, 0, 0, 1]), torch.tensor([3, 1]), torch.tensor([0, 1, 1])):
        if not lean.seen:
            assert_close(lean(lean.take_prompt(3, 4)), plain(plain.take_prompt(3, 4)), **NEAR)
        lean.reorder(index)
        plain.reorder(index)
        ids = draw_ids(len(index), 1, seed=len(index))
        assert_close(lean(ids), plain(ids), **NEAR)


@torch.no_grad()
def test_what_the_head_reads_equals_that_of_the_modules(model):
    lean, plain = both(model, ROWS)
    assert_close(lean.hidden(lean.take_prompt(3, 4)), plain.hidden(plain.take_prompt(3, 4)), **NEAR)
    assert lean.head[0] is plain.head[0]
    assert lean.attention() is None


@pytest.mark.parametrize("way", [regard.greedy, regard.sample, regard.beam])
def test_every_way_of_decoding_says_the_same_in_float32(model, way):
    model.float()
    limits = regard.Limits(longest=[9, 4, 7], end=None, never=())
    texts = []
    for engine in ("lean", "plain"):
        options = {"generator": torch.Generator().manual_seed(4)} if way is regard.sample else {}
        found = way(model.begin(ROWS, engine=engine), 3, limits=limits, **options)
        texts.append([one[0].ids if isinstance(one, list) else one.ids for one in found])
    assert texts[0] == texts[1]


def test_a_model_that_trains_on_between_is_read_as_it_is_then(model):
    prompt = draw_ids(2, 5)
    with torch.no_grad():
        model.begin(prompt)(prompt)
        for parameter in model.parameters():
            parameter.add_(0.1)
        compare(*both(model, prompt), prompt, [draw_ids(2, 1)])
        model.load_state_dict({name: tensor * 0.9 for name, tensor in model.state_dict().items()})
        compare(*both(model, prompt), prompt, [draw_ids(2, 1)])
        model.load_state_dict({name: tensor * 1.1 for name, tensor in model.state_dict().items()}, assign=True)
        compare(*both(model, prompt), prompt, [draw_ids(2, 1)])


def make():
    return shaken(CONFIGS["llama"].build())


class Adapter(nn.Linear):
    """A linear layer that somebody replaced."""

    def forward(self, x):
        return 2 * super().forward(x)


def train(model):
    model.blocks[1].train()


def adapt(model):
    old = model.blocks[1].attention.to_v
    model.blocks[1].attention.to_v = Adapter(old.in_features, old.out_features, bias=False).double().eval()


def extend(model):
    model.__class__ = type("Other", (type(model),), {})


def hook(model):
    model.blocks[2].feed_forward.register_forward_hook(lambda module, args, out: 2 * out)


def hook_before(model):
    model.norm.register_forward_pre_hook(lambda module, args: (2 * args[0],))


def patch(model):
    forward = model.norm.forward
    model.norm.forward = lambda x: 2 * forward(x)


def parametrize(model):
    nn.utils.parametrizations.weight_norm(model.blocks[0].attention.to_q).eval()


def halve(model):
    model.half()


def compile(model):
    model.norm.compile(backend="eager")


def soften(model):
    model.blocks[0].attention.softcap = 3.0


OBSTACLES = {
    train: "in training mode",
    adapt: r"blocks\.1\.attention\.to_v is a Adapter of its own",
    extend: "the model is a Other of its own",
    hook: "there are hooks on its modules",
    hook_before: "there are hooks on its modules",
    patch: "norm is a RMSNorm of its own",
    parametrize: "is a ParametrizedLinear of its own",
    halve: "its weights are not all float32, or all float64",
    compile: "norm is a RMSNorm of its own",
    soften: "its attention is not the scaled dot product alone",
}


@pytest.mark.parametrize("change", OBSTACLES, ids=lambda change: change.__name__)
def test_what_stands_in_the_way_is_said_and_the_modules_run(change):
    model, prompt = make(), draw_ids(2, 5)
    assert find_obstacle(model) is None
    change(model)
    assert isinstance(model.begin(prompt), CausalState)
    with pytest.raises(regard.errors.ConfigError, match=f"the engine 'lean' cannot be used: .*{OBSTACLES[change]}"):
        model.begin(prompt, engine="lean")


def test_alibi_is_left_to_the_modules():
    model = shaken(CONFIGS["gpt alibi"].build())
    assert isinstance(model.begin(draw_ids(2, 5)), CausalState)


def test_a_hook_on_all_modules_is_seen():
    model, prompt = make(), draw_ids(2, 5)
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, out: None)
    try:
        assert isinstance(model.begin(prompt), CausalState)
    finally:
        handle.remove()
    assert isinstance(model.begin(prompt), LeanState)


def test_whoever_watches_edits_or_swaps_gets_the_modules():
    model, prompt = make(), draw_ids(2, 5)
    for listening in (
        regard.watch(model),
        regard.edit(model),
        regard.swap(model, attention=regard.window(2, 0)),
        listen(),
    ):
        with listening, torch.no_grad():
            state = model.begin(prompt)
            assert isinstance(state, CausalState)
            state(prompt)
    assert isinstance(model.begin(prompt), LeanState)


@torch.no_grad()
@pytest.mark.parametrize("options", [{}, {"window": 6}, {"window": 6, "sinks": 2}], ids=["all", "window", "sinks"])
def test_whoever_comes_later_gets_the_modules_from_then_on(options):
    for name in ("llama", "mistral"):
        model = shaken(CONFIGS[name].build())
        prompt, after = draw_ids(2, 5), draw_ids(2, 14, seed=8)
        lean, plain = both(model, prompt, **options)
        assert_close(lean(prompt), plain(prompt), **NEAR)
        for ids in after[:, :8].split(1, 1):
            assert_close(lean(ids), plain(ids), **NEAR)
        with regard.watch(model) as trace:
            assert_close(lean(after[:, 8:9]), plain(after[:, 8:9]), **NEAR)
        assert lean.is_plain
        assert len(trace.layers) == len(model.blocks)
        lean.reorder(torch.tensor([1, 0, 1]))
        plain.reorder(torch.tensor([1, 0, 1]))
        for ids in after[:, 9:].split([1, 3, 1], 1):
            ids = ids[[0, 1, 0]]
            assert_close(lean(ids), plain(ids), **NEAR)


def leave_eval(model):
    model.train()


def take_gradients(model):
    torch.set_grad_enabled(True)


def replace_weight(model):
    model.blocks[1].attention.to_q.weight.data = model.blocks[1].attention.to_q.weight.data * 2


@pytest.mark.parametrize("change", [hook, hook_before, leave_eval, take_gradients, replace_weight])
def test_a_change_in_the_middle_is_noticed(change):
    model, prompt, ids = make(), draw_ids(2, 5), draw_ids(2, 1, seed=8)
    with torch.no_grad():
        lean, plain = both(model, prompt)
        assert_close(lean(prompt), plain(prompt), **NEAR)
        change(model)
        assert_close(lean(ids), plain(ids), **NEAR)
    assert lean.is_plain


def test_what_cannot_be_read_is_refused_in_words():
    model = shaken(CONFIGS["gpt2"].build())
    state = model.begin(draw_ids(2, 38))
    with torch.no_grad():
        state(draw_ids(2, 38))
        with pytest.raises(regard.errors.PositionError, match="41 tokens came, but this model reads at most 40"):
            state(draw_ids(2, 3))
        with pytest.raises(regard.errors.ShapeError, match="an id is 29"):
            state(torch.full((2, 1), 29))
        with pytest.raises(regard.errors.CacheError, match="3 rows came, but 2 are being written"):
            state(draw_ids(3, 1))
    with pytest.raises(regard.errors.PositionError, match="38 tokens and 4 steps came"):
        regard.greedy(model.begin(draw_ids(2, 38)), 2, limits=regard.Limits(longest=4, end=None))


@pytest.mark.parametrize("way", [regard.greedy, regard.beam])
def test_who_watches_hears_one_pass_over_the_texts(way):
    model = make()
    state = model.begin(ROWS)
    assert isinstance(state, LeanState)
    with regard.watch(model) as trace:
        found = way(state, 3, limits=regard.Limits(longest=4, end=None, never=()))
    texts = [one[0].ids if isinstance(one, list) else one.ids for one in found]
    rows = [torch.tensor([*row, *text]) for row, text in zip(ROWS, texts)]
    with regard.watch(model) as wanted, torch.no_grad():
        model(nn.utils.rnn.pad_sequence(rows, batch_first=True))
    assert len(trace.runs) == 1
    for mine, right in zip(trace.layers, wanted.layers, strict=True):
        assert_close(mine.weights.dense(), right.weights.dense(), rtol=0, atol=0)
