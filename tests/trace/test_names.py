"""Rows and columns carry the tokens that they are, or none: equal lengths alone are no evidence."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import regard
from regard.trace.record.layer import Layer

WORDS = ["the", "cat", "sat", "down", "here", "now"]


class Pair(nn.Module):
    """Token ids around torch's own encoder–decoder, as people write it."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.embed, self.body = nn.Embedding(31, 24), body

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        out: Tensor = self.body(self.embed(source), self.embed(target))
        return out


def transformer() -> nn.Module:
    return nn.Transformer(24, 3, 2, 2, 40, dropout=0.0, batch_first=True).eval()


def ids(b: int, n: int, seed: int) -> Tensor:
    return torch.randint(1, 31, (b, n), generator=torch.Generator().manual_seed(seed))


def told(layer: Layer) -> bool:
    return any("named by position" in note for note in layer.notes)


def must_be(layer: Layer, rows: Tensor, columns: Tensor) -> None:
    assert layer.queries is not None
    assert layer.keys is not None
    assert [tokens.ids for tokens in layer.queries] == [tuple(line) for line in rows.tolist()]
    assert [tokens.ids for tokens in layer.keys] == [tuple(line) for line in columns.tolist()]
    assert not told(layer)


@pytest.mark.parametrize("n", [6, 5])
def test_a_source_and_a_target_are_named_by_what_was_embedded_into_them(n: int) -> None:
    model, source, target = Pair(transformer()).eval(), ids(2, 6, 1), ids(2, n, 2)
    with regard.watch(model) as trace:
        model(source, target)
    assert [layer.kind for layer in trace.layers] == ["self", "self", "self", "cross", "self", "cross"]
    for layer in trace.layers:
        inside = "decoder" in layer.name
        must_be(layer, target if inside else source, target if inside and layer.kind == "self" else source)


@pytest.mark.parametrize("body", ["transformer", "decoder"])
def test_strings_that_fit_both_sides_name_neither(body: str) -> None:
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(24, 3, 40, batch_first=True), 2).eval()
    model = transformer() if body == "transformer" else decoder
    with regard.watch(model, WORDS) as trace:
        model(torch.randn(1, 6, 24), torch.randn(1, 6, 24))
    assert len(trace.layers) == (6 if body == "transformer" else 4)
    for layer in trace.layers:
        assert (layer.queries, layer.keys) == (None, None)
        assert told(layer)
    with regard.watch(model, WORDS) as trace:
        model(torch.randn(1, 6, 24), torch.randn(1, 4, 24))
    assert any(layer.queries is not None and layer.queries[0].shown == tuple(WORDS) for layer in trace.layers)
    assert not any(told(layer) for layer in trace.layers)


def test_strings_name_one_input_and_not_another_that_is_as_long() -> None:
    model: Any = regard.models.GPTConfig(31, width=24, heads=3, layers=1, context=16).build().eval()
    with regard.watch(model, WORDS) as trace:
        model(ids(1, 6, 1))
        model(ids(1, 6, 1))
    assert trace[0].queries is not None
    with regard.watch(model, WORDS) as trace:
        model(ids(1, 6, 1))
        model(ids(1, 6, 2))
    for run in trace.runs:
        assert run.layers[0].queries is None
        assert told(run.layers[0])


@pytest.mark.parametrize("name", ["T5", "Bart"])
def test_an_encoder_decoder_of_the_library_is_named_on_both_sides(name: str) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    if name == "T5":
        config = transformers.T5Config(vocab_size=31, d_model=24, d_kv=8, d_ff=40, num_layers=2, num_heads=3)
        model = transformers.T5ForConditionalGeneration(config).eval()
    else:
        config = transformers.BartConfig(
            vocab_size=31, d_model=24, encoder_layers=2, decoder_layers=2, encoder_attention_heads=3,
            decoder_attention_heads=3, encoder_ffn_dim=40, decoder_ffn_dim=40, max_position_embeddings=20,
        )  # fmt: skip
        model = transformers.BartForConditionalGeneration(config).eval()
    source, target = ids(2, 6, 1), ids(2, 6, 2)
    with torch.no_grad(), regard.watch(model) as trace:
        model(input_ids=source, decoder_input_ids=target)
    assert len(trace.layers) == 6
    for layer in trace.layers:
        inside = "decoder" in layer.name
        must_be(layer, target if inside else source, target if inside and layer.kind == "self" else source)


def test_the_translators_of_the_package_are_named_on_both_sides() -> None:
    torch.manual_seed(0)
    model = regard.models.TranslatorConfig(31, 29, width=24, heads=3, layers=2, hidden=40).build().eval()
    source, target = ids(2, 6, 1), ids(2, 6, 2) % 28 + 1
    with torch.no_grad(), regard.watch(model) as trace:
        model(source, target)
    assert [layer.kind for layer in trace.layers] == ["self", "self", "self", "cross", "self", "cross"]
    for layer in trace.layers:
        inside = layer.name.startswith("decoder")
        must_be(layer, target if inside else source, target if inside and layer.kind == "self" else source)


def test_a_recurrent_translator_whose_steps_ask_one_by_one_is_not_named_by_its_source() -> None:
    torch.manual_seed(0)
    model = regard.models.Seq2SeqConfig(31, 29, width=24).build().eval()
    with torch.no_grad(), regard.watch(model) as trace:
        model(ids(2, 6, 1), ids(2, 6, 2) % 28 + 1)
    assert [layer.queries for layer in trace.layers] == [None]


def test_models_of_one_text_keep_their_names_beside_other_integers() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=31, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40
    )
    model, text = transformers.BertModel(config).eval(), ids(2, 6, 1)
    with torch.no_grad(), regard.watch(model) as trace:
        model(text, torch.ones_like(text), torch.zeros_like(text))
    for layer in trace.layers:
        must_be(layer, text, text)
