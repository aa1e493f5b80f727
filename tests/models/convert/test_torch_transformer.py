"""`nn.Transformer` as our translator: the same logits, the same tensors back, and refusals by name."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from regard.errors import ModelError
from regard.layers import MultiHead
from regard.models.convert import convert_config, convert_weights, export_weights, from_torch_transformer
from regard.models.convert.torch_transformer import TORCH_TRANSFORMER, describe_transformer
from tests.models.convert.common import ERROR, must_be_same, shaken
from tests.trace.checkpoints import aren

V, N, M, H, ENCODERS, DECODERS, HIDDEN, B, S, T = 23, 29, 12, 3, 2, 4, 20, 5, 7, 6


def make(*, d_model=M, nhead=H, layers=(ENCODERS, DECODERS), norm_first=True, **options):
    """As the paper has it, post-norm stacks have no norm behind them, unlike what torch makes by itself."""
    how = {"dim_feedforward": HIDDEN, "batch_first": True, "norm_first": norm_first, "dropout": 0.25} | options
    bias = options.get("bias", True)
    last = [nn.LayerNorm(d_model, bias=bias) if norm_first else None for _ in range(2)]
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(d_model, nhead, **how), layers[0], last[0], enable_nested_tensor=False
    )
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(d_model, nhead, **how), layers[1], last[1])
    return shaken(nn.Transformer(d_model, nhead, custom_encoder=encoder, custom_decoder=decoder, batch_first=True))


def embeddings(width=M, *, shared=False, tied=True, sizes=(V, N)):
    tables = {"source_embed.weight": torch.randn(sizes[0], width)}
    if not shared:
        tables["target_embed.weight"] = torch.randn(sizes[1], width)
    if not tied:
        tables["head.weight"] = torch.randn(sizes[0] if shared else sizes[1], width)
    return tables


def run(theirs, tables, source, target):
    """Their logits: √width times the embeddings in, the head behind."""
    read = tables["source_embed.weight"]
    write = tables.get("target_embed.weight", read)
    hidden = source == 0
    later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
    out = theirs(
        F.embedding(source, read) * read.shape[1] ** 0.5, F.embedding(target, write) * read.shape[1] ** 0.5,
        tgt_mask=later, src_key_padding_mask=hidden, memory_key_padding_mask=hidden,
    )  # fmt: skip
    return out @ tables.get("head.weight", write).T


def draw_batch(source_size, target_size, batch=B):
    source, target = torch.randint(1, source_size, (batch, S)), torch.randint(1, target_size, (batch, T))
    for row in range(1, batch):
        source[row, S - row :] = 0
    return source, target


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@settings(max_examples=15)
@given(
    head=st.integers(1, 6),
    heads=st.integers(1, 4),
    layers=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    options=st.fixed_dictionaries(
        {
            "dim_feedforward": st.integers(1, 40),
            "activation": st.sampled_from(["relu", "gelu"]),
            "norm_first": st.booleans(),
            "bias": st.booleans(),
        }
    ),
    around=st.fixed_dictionaries({"shared": st.booleans(), "tied": st.booleans()}),
)
def test_logits_equal_those_of_torch_whatever_the_arguments(dtype, head, heads, layers, options, around):
    theirs = make(d_model=head * heads, nhead=heads, layers=layers, **options).to(dtype)
    tables = {name: table.to(dtype) for name, table in embeddings(head * heads, **around).items()}
    ours = from_torch_transformer(theirs, tables)
    source, target = draw_batch(V, V if around["shared"] else N)
    assert_close(ours(source, target), run(theirs, tables, source, target), rtol=ERROR[dtype], atol=ERROR[dtype])


@pytest.mark.parametrize("norm_first", [True, False], ids=["pre", "post"])
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_weights_come_back_bit_for_bit(norm_first, tied):
    theirs, tables = make(norm_first=norm_first), embeddings(tied=tied)
    given = describe_transformer(theirs) | {"source_vocab_size": V, "target_vocab_size": N, "positions": "sinusoid"}
    config = convert_config("torch_transformer", given | {"tied": tied})
    state = theirs.state_dict() | tables
    ours = convert_weights(TORCH_TRANSFORMER, state, config)
    must_be_same(export_weights(TORCH_TRANSFORMER, ours, config), state)
    assert config.dropout == 0.25
    assert (config.layers, config.decoder_layers, config.hidden) == (ENCODERS, DECODERS, HIDDEN)


def test_the_tables_agree_with_the_layer_that_takes_one_attention_over():
    theirs = make()
    ours = from_torch_transformer(theirs, embeddings())
    for number, layer in enumerate(theirs.decoder.layers):
        block = ours.decoder.blocks[number]
        must_be_same(block.cross_attention.state_dict(), MultiHead.from_torch(layer.multihead_attn).state_dict())
        must_be_same(block.self_attention.state_dict(), MultiHead.from_torch(layer.self_attn).state_dict())
    assert number == DECODERS - 1


def test_learned_positions_come_along():
    tables = embeddings() | {f"{side}.added.weight": torch.randn(19, M) for side in ("encoder", "decoder")}
    ours = from_torch_transformer(make(), tables, positions="learned", pad=1)
    assert torch.equal(ours.decoder.added.weight, tables["decoder.added.weight"])
    assert ours.config.pad == 1


def test_real_stacks_read_and_write_the_same_vectors():
    """The transliterator adds other waves than ours and a bias to its logits, so that only its stacks are compared."""
    theirs = aren()
    body = theirs.transformer
    tables = {f"{side}_embed.weight": getattr(theirs, f"{side}_embedding").weight for side in ("source", "target")}
    ours = from_torch_transformer(body, tables)
    source, target = theirs.encode("فلسطين"), torch.tensor([[theirs.START, 5, 9, 31]])
    read, written = theirs.embed(theirs.source_embedding, source), theirs.embed(theirs.target_embedding, target)
    later = torch.ones(4, 4, dtype=torch.bool).triu(1)
    x, y = read, written
    for block in ours.encoder.blocks:
        x = block(x)
    memory = ours.encoder.norm(x)
    for block in ours.decoder.blocks:
        y = block(y, memory)
    assert_close(memory, body.encoder(read), rtol=1e-4, atol=1e-4)
    assert_close(ours.decoder.norm(y), body(read, written, tgt_mask=later), rtol=1e-4, atol=1e-4)


def test_what_our_translator_does_not_have_is_named():
    with pytest.raises(ModelError, match=r"have 4 tensors .* 'encoder\.norm\.weight' for one"):
        from_torch_transformer(nn.Transformer(M, 4, 1, 1, HIDDEN, batch_first=True), embeddings())
    with pytest.raises(ModelError, match=r"have layer_norm_eps=0\.001 and 1e-05"):
        from_torch_transformer(make(layer_norm_eps=1e-3), embeddings())
    with pytest.raises(ModelError, match=r"layer_norm_eps=0\.001, .* only be made with 1e-05"):
        from_torch_transformer(make(layer_norm_eps=1e-3, norm_first=False), embeddings())
    with pytest.raises(ModelError, match=r"activation='mish', .* only be made with 'relu', 'gelu'"):
        from_torch_transformer(make(activation=F.mish), embeddings())
    uneven = make()
    uneven.decoder.layers[2] = nn.TransformerDecoderLayer(M, H, 8, batch_first=True, norm_first=True)
    with pytest.raises(ModelError, match="have dim_feedforward=20 and 8, but ours are all alike"):
        from_torch_transformer(uneven, embeddings())
    with pytest.raises(ModelError, match=r"an nn\.Transformer has no embeddings"):
        from_torch_transformer(make(), {})
    with pytest.raises(ModelError, match=r"'source_embed\.weight' came with shape \(23, 13\)"):
        from_torch_transformer(make(), embeddings() | {"source_embed.weight": torch.ones(V, 13)})
