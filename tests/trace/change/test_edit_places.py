"""An edit falls on the layer, the call and the position that it names, also under caches and while generating."""

import pytest
import torch
from torch.testing import assert_close

from regard.errors import WatchError
from regard.trace.change.edit import edit
from regard.trace.watch import watch
from tests.trace.change.helpers import under
from tests.trace.change.library import HEADS, LAYERS, LENGTH, built, first, ids

transformers = pytest.importorskip("transformers")


@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "LlamaForCausalLM"])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_positions_under_a_cache_are_those_of_the_whole_text(name, cache):
    model, x = built(name), ids(batch=1, length=3)
    told = {} if cache == "dynamic" else {"cache_implementation": "static"}
    with torch.no_grad(), edit(model) as e:
        e.block(query=[2, 5], key=0)
        e.force(query=6, key=4, weight=0.5, heads=1)
        made = model.generate(
            x, max_new_tokens=6, do_sample=False, output_logits=True, return_dict_in_generate=True, **told
        )
        whole = first(model(made.sequences[:, :-1]))
    assert_close(torch.stack(made.logits, 1), whole[:, 2:].to(made.logits[0]), atol=1e-6, rtol=1e-5)


def test_a_watched_and_edited_generation_is_one_map():
    model, x = built("LlamaForCausalLM").float(), ids(batch=1, length=3)
    with torch.no_grad(), edit(model) as e, watch(model) as trace:
        e.zero(query=5, key=[0, 1])
        e.block(query=1, key=0)
        made = model.generate(x, max_new_tokens=5, do_sample=False)
    with torch.no_grad(), edit(model) as e, watch(model) as once:
        e.zero(query=5, key=[0, 1])
        e.block(query=1, key=0)
        model(made[:, :-1])
    assert len(trace.runs) == 1
    for stitched, whole in zip(trace.layers, once.layers):
        assert stitched.weights.shape == whole.weights.shape
        assert_close(stitched.weights.dense(), whole.weights.dense())


def test_a_key_beyond_the_end_of_a_generation_is_refused():
    model, x = built("LlamaForCausalLM"), ids(batch=1, length=3)
    model.generation_config.eos_token_id = None
    with pytest.raises(WatchError, match="names key 9, but the longest call had 5"):
        under(model, lambda e: [e.block(query=4, key=9), model.generate(x, max_new_tokens=3, do_sample=False)], x)


def test_cross_attention_is_edited_by_its_own_path_and_a_block_of_two_is_ambiguous():
    config = transformers.T5Config(
        vocab_size=31,
        d_model=24,
        d_kv=6,
        d_ff=20,
        num_layers=LAYERS,
        num_heads=HEADS,
        dropout_rate=0.0,
        decoder_start_token_id=0,
    )
    model = built("T5ForConditionalGeneration", config=config)
    source, target = ids(length=6), ids(length=3)
    fed = {"input_ids": source, "decoder_input_ids": target}
    with pytest.raises(WatchError, match=r"'decoder.block.1' fits .*layer.0.SelfAttention and .*EncDecAttention"):
        under(model, lambda e: e.mute("decoder.block.1", heads=0), **fed)
    found = first(under(model, lambda e: e.mute("decoder.block.1.layer.1", heads=0), **fed))
    with torch.no_grad():
        model.decoder.block[1].layer[1].EncDecAttention.o.weight[:, :6] = 0
    assert_close(found, first(model(**fed)))


def test_one_call_of_a_shared_module_is_named_by_its_number():
    config = transformers.AlbertConfig(
        vocab_size=31,
        embedding_size=12,
        hidden_size=24,
        intermediate_size=20,
        num_hidden_layers=3,
        num_attention_heads=HEADS,
        max_position_embeddings=16,
    )
    model, x = built("AlbertModel", config=config), ids()
    with torch.no_grad(), edit(model) as e, watch(model) as trace:
        e.replace("attention#2", [1])
        model(x)
    changed = [bool(layer.edits) for layer in trace.layers]
    assert changed == [False, True, False]
    assert_close(trace.layers[1].weights[0, 1].dense(), torch.full((LENGTH, LENGTH), 1 / LENGTH, dtype=torch.float64))


def test_positions_count_from_the_first_token_also_when_a_sliding_cache_forgot_it():
    config = transformers.MistralConfig(
        vocab_size=31,
        hidden_size=24,
        intermediate_size=20,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=2,
        sliding_window=4,
        eos_token_id=None,
    )
    model, x = built("MistralForCausalLM", config=config), ids(batch=1, length=3)

    def ask(e) -> None:
        e.block(query=[7, 2], key=[5, 0])
        e.force(query=9, key=8, weight=0.9)

    with torch.no_grad(), edit(model) as e, watch(model) as trace:
        ask(e)
        made = model.generate(x, max_new_tokens=9, do_sample=False)
        model(made[:, :-1], use_cache=False)
    stitched, whole = trace.runs
    for a, b in zip(stitched.layers, whole.layers):
        assert_close(a.weights.dense(), b.weights.dense())


def test_queries_of_cross_attention_are_counted_while_generating():
    config = transformers.BartConfig(
        vocab_size=31,
        d_model=24,
        encoder_layers=1,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=20,
        decoder_ffn_dim=20,
        max_position_embeddings=32,
        pad_token_id=0,
        eos_token_id=None,
        forced_eos_token_id=None,
        decoder_start_token_id=2,
    )
    model, source = built("BartForConditionalGeneration", config=config), ids(batch=1, length=6)
    with torch.no_grad(), edit(model) as e:
        e.block(query=[0, 3], key=[1, 2], path=["decoder.layers.0.encoder_attn", "decoder.layers.1.encoder_attn"])
        made = model.generate(
            source, max_new_tokens=5, num_beams=1, do_sample=False, output_logits=True, return_dict_in_generate=True
        )
        whole = first(model(input_ids=source, decoder_input_ids=made.sequences[:, :-1], use_cache=False))
    assert_close(torch.stack(made.logits, 1), whole.to(made.logits[0]), atol=1e-6, rtol=1e-5)
