"""Names that are given where the run cannot tell: they fill what is unknown, or are refused."""

import pytest
import torch
from torch import Tensor, nn

import regard
from regard.errors import TraceError

ROWS, COLUMNS = ["un", "deux", "trois", "quatre", "cinq"], ["one", "two", "three"]


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.TransformerDecoder(nn.TransformerDecoderLayer(24, 3, 40, batch_first=True), 2).eval()


def inputs() -> tuple[Tensor, Tensor]:
    return torch.randn(2, 5, 24), torch.randn(2, 3, 24)


def shown(layer) -> tuple:
    return tuple(None if side is None else side[1].shown for side in (layer.queries, layer.keys))


def test_rows_and_columns_are_given_apart() -> None:
    body = model()
    with torch.no_grad(), regard.watch(body, queries=ROWS, keys=COLUMNS) as trace:
        body(*inputs())
    for layer in trace.layers:
        assert shown(layer) == (tuple(ROWS), tuple(ROWS if layer.kind == "self" else COLUMNS))
        assert not layer.notes


def test_names_are_given_by_layer_and_the_others_have_none() -> None:
    body = model()
    given = {"layers.1.multihead_attn": ROWS}
    with torch.no_grad(), regard.watch(body, queries=given, keys={"layers.1.multihead_attn": COLUMNS}) as trace:
        body(*inputs())
    assert [shown(layer) != (None, None) for layer in trace.layers] == [False, False, False, True]
    assert shown(trace.layers[3]) == (tuple(ROWS), tuple(COLUMNS))


def test_a_list_leaves_what_the_run_knows_and_a_path_does_not() -> None:
    body: nn.Module = regard.models.GPTConfig(31, width=24, heads=3, layers=2, context=16).build().eval()
    ids = torch.arange(2, 7)[None]
    with torch.no_grad(), regard.watch(body, queries=ROWS) as trace:
        body(ids)
    assert [layer.queries[0].ids for layer in trace.layers] == [(2, 3, 4, 5, 6)] * 2
    with torch.no_grad(), regard.watch(body, queries={"blocks.1": ROWS}) as trace:
        body(ids)
    assert trace.layers[0].queries[0].ids == (2, 3, 4, 5, 6)
    assert trace.layers[1].queries[0].shown == trace.layers[1].keys[0].shown == tuple(ROWS)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"queries": ROWS[:4]}, "4 queries were given, but the layers have 5; give one token for each"),
        ({"keys": [*COLUMNS, "four"]}, "4 keys were given, but the layers have 3, 5; give one token for each"),
        ({"queries": {"layers.1.self_attn": COLUMNS}}, "3 queries were given for 'layers.1.self_attn', but it has 5"),
        ({"keys": {"layers.7": COLUMNS}}, "keys were given for 'layers.7', but the layers that were seen are layers.0"),
    ],
)
def test_names_that_contradict_the_run_are_refused_in_one_sentence(how, said) -> None:
    body = model()
    with pytest.raises(TraceError) as refusal, torch.no_grad(), regard.watch(body, **how):
        body(*inputs())
    assert str(refusal.value).startswith(said)


@pytest.mark.parametrize("given", ["un deux", 7])
def test_what_is_no_list_of_tokens_is_refused_before_the_run(given) -> None:
    with pytest.raises(TraceError, match="queries came as"), regard.watch(model(), queries=given):
        raise AssertionError("the block must not be entered")
