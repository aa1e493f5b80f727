"""DistilBERT of another library: the same answers of every head, the same tensors back, and a folder that it reads."""

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from regard.errors import ModelError, ShapeError
from regard.models.convert import convert_config, convert_weights, export_weights, from_transformers, to_transformers
from regard.models.convert.distilbert import DISTILBERT
from tests.models.convert.common import ERROR, must_be_same, shaken
from tests.models.convert.encoders import ENDS, must_agree

V, M, H, LAYERS, HIDDEN, CONTEXT, LABELS, B, T = 29, 12, 3, 2, 20, 31, 5, 6, 9
ARCHITECTURES = [f"DistilBert{end}" for end in ENDS]


def make(architecture, **options):
    sizes = {"vocab_size": V, "dim": M, "n_heads": H, "n_layers": LAYERS, "hidden_dim": HIDDEN}
    labels = {"num_labels": LABELS} if "Classification" in architecture else {}
    config = transformers.DistilBertConfig(**sizes | labels | {"max_position_embeddings": CONTEXT} | options)
    theirs = shaken(getattr(transformers, architecture)(config))
    theirs.config.architectures = [architecture]
    return theirs


def draw_batch(size=V, length=T, pad=0):
    others = torch.tensor([i for i in range(size) if i != pad])
    ids = others[torch.randint(len(others), (B, length))]
    for row in range(1, B):
        ids[row, max(1, length - row) :] = pad
    return ids, ids != pad


@torch.no_grad()
def run(theirs, ids, real):
    out = theirs(input_ids=ids, attention_mask=real.long())
    if "start_logits" in out:
        return torch.stack((out.start_logits, out.end_logits), -1)
    return out.logits if "logits" in out else out.last_hidden_state


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@settings(max_examples=25)
@given(
    architecture=st.sampled_from(ARCHITECTURES),
    head=st.integers(1, 6),
    length=st.integers(1, 12),
    options=st.fixed_dictionaries(
        {
            "vocab_size": st.integers(5, 40),
            "n_heads": st.integers(1, 4),
            "n_layers": st.integers(1, 3),
            "hidden_dim": st.integers(1, 40),
            "activation": st.sampled_from(["gelu", "relu"]),
            "pad_token_id": st.integers(0, 3),
            "sinusoidal_pos_embds": st.booleans(),
            "tie_word_embeddings": st.booleans(),
        }
    ),
)
def test_answers_equal_those_of_transformers_whatever_the_config(dtype, architecture, head, length, options):
    theirs = make(architecture, dim=2 * head * options["n_heads"], **options).to(dtype)
    ours = from_transformers(theirs.config.to_dict(), theirs.state_dict())
    ids, real = draw_batch(options["vocab_size"], length, options["pad_token_id"])
    must_agree(ours(ids), run(theirs, ids, real), real, ERROR[dtype])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_weights_and_folders_come_back(architecture, tmp_path):
    theirs = make(architecture)
    config = convert_config("distilbert", theirs.config.to_dict())
    tensors = convert_weights(DISTILBERT, theirs.state_dict(), config)
    must_be_same(export_weights(DISTILBERT, tensors, config), theirs.state_dict())
    ours = from_transformers(theirs.config.to_dict(), theirs.state_dict())
    to_transformers(ours, tmp_path)
    again, info = getattr(transformers, architecture).from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    ids, real = draw_batch()
    assert_close(run(again.eval(), ids, real), run(theirs, ids, real), rtol=0, atol=0)
    must_be_same(from_transformers(tmp_path).state_dict(), ours.state_dict())


def test_what_does_not_belong_is_named():
    theirs = make("DistilBertForMaskedLM")
    given, state = theirs.config.to_dict(), theirs.state_dict()
    with pytest.raises(ModelError, match=r"activation='silu', .* 'gelu'"):
        convert_config("distilbert", given | {"activation": "silu"})
    with pytest.raises(ModelError, match="surprise=3, which the table of 'distilbert' does not know"):
        convert_config("distilbert", given | {"surprise": 3})
    with pytest.raises(ModelError, match=r"lack 1 tensors .* 'vocab_transform\.bias'"):
        from_transformers(given, {name: one for name, one in state.items() if name != "vocab_transform.bias"})
    with pytest.raises(ModelError, match=r"have 1 tensors .* 'distilbert\.embeddings\.token_type_embeddings\.weight'"):
        from_transformers(given, state | {"distilbert.embeddings.token_type_embeddings.weight": torch.ones(2, M)})
    with pytest.raises(ShapeError, match="token types came, but this model tells no texts apart"):
        from_transformers(given, state)(torch.ones(1, 2).long(), torch.zeros(1, 2).long())
