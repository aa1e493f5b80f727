"""BERT, RoBERTa and ELECTRA of another library, with every head that ours has: made, and run on padded batches."""

import torch
import transformers
from hypothesis import strategies as st

from tests.models.convert.common import shaken

V, M, H, LAYERS, HIDDEN, CONTEXT, TYPES, LABELS, B, T = 29, 12, 3, 2, 20, 31, 4, 5, 6, 9
CONFIGS = {
    "Bert": transformers.BertConfig,
    "Roberta": transformers.RobertaConfig,
    "Electra": transformers.ElectraConfig,
}
ENDS = ["Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"]
ARCHITECTURES = {
    "Bert": [f"Bert{end}" for end in (*ENDS, "ForPreTraining", "ForNextSentencePrediction")],
    "Roberta": [f"Roberta{end}" for end in ENDS],
    "Electra": [f"Electra{end}" for end in (*ENDS, "ForPreTraining")],
}


def make(architecture, **options):
    """A model of theirs with weights far from where they start; its config names its class, as in a file."""
    family = next(name for name in CONFIGS if architecture.startswith(name))
    sizes = {
        "vocab_size": V,
        "hidden_size": M,
        "num_attention_heads": H,
        "num_hidden_layers": LAYERS,
        "intermediate_size": HIDDEN,
        "max_position_embeddings": CONTEXT,
        "type_vocab_size": TYPES,
        **({"num_labels": LABELS} if "Classification" in architecture else {}),
    }
    theirs = shaken(getattr(transformers, architecture)(CONFIGS[family](**sizes | options)))
    theirs.config.architectures = [architecture]
    for name in ("cls.predictions", "lm_head"):  # where nothing is tied, one of their two biases is read by nobody
        state = theirs.state_dict()
        if f"{name}.decoder.bias" in state:
            state[f"{name}.bias"].copy_(state[f"{name}.decoder.bias"])
    return theirs


def parts(theirs):
    return theirs.config.to_dict(), theirs.state_dict()


def draw_batch(theirs, batch=B, length=T):
    """Ids padded on the right to rows of different lengths, segments, and which tokens are no padding."""
    config = theirs.config
    others = [i for i in range(config.vocab_size) if i != config.pad_token_id]
    ids = torch.tensor(others)[torch.randint(len(others), (batch, length))]
    for row in range(1, batch):
        ids[row, max(1, length - row) :] = config.pad_token_id
    types = torch.randint(config.type_vocab_size, (batch, length))
    return ids, types, ids != config.pad_token_id


@torch.no_grad()
def run(theirs, ids, types, real):
    """What theirs answers, as one tensor or as the pair of pre-training."""
    out = theirs(input_ids=ids, token_type_ids=types, attention_mask=real.long())
    if "start_logits" in out:
        return torch.stack((out.start_logits, out.end_logits), -1)
    if "prediction_logits" in out:
        return out.prediction_logits, out.seq_relationship_logits
    return out.logits if "logits" in out else out.last_hidden_state


def must_agree(found, wanted, real, error):
    """The same numbers at every position that is no padding."""
    if isinstance(wanted, tuple):
        for one, other in zip(found, wanted, strict=True):
            must_agree(one, other, real, error)
        return
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    if found.shape[:2] == real.shape and found.ndim > 2 - (found.shape == real.shape):
        found, wanted = found[real], wanted[real]
    torch.testing.assert_close(found, wanted, rtol=error, atol=error)


def sizes(family):
    """Random values of every key that decides a number; `length` tokens fit in."""

    @st.composite
    def draw_all(draw):
        heads, pad, length = draw(st.integers(1, 4)), draw(st.integers(0, 3)), draw(st.integers(1, 12))
        options = {
            "vocab_size": draw(st.integers(5, 40)),
            "num_attention_heads": heads,
            "hidden_size": heads * draw(st.integers(1, 6)),
            "num_hidden_layers": draw(st.integers(1, 3)),
            "intermediate_size": draw(st.integers(1, 40)),
            "max_position_embeddings": length + draw(st.integers(0, 3)) + (pad + 1 if family == "Roberta" else 0),
            "type_vocab_size": draw(st.integers(1, 3)),
            "hidden_act": draw(st.sampled_from(["gelu", "relu", "gelu_new"])),
            "layer_norm_eps": draw(st.sampled_from([1e-12, 1e-5, 0.1])),
            "pad_token_id": pad,
            "tie_word_embeddings": draw(st.booleans()),
            "bos_token_id": None,
            "eos_token_id": None,
        }
        if family == "Electra":
            options["embedding_size"] = draw(st.sampled_from([options["hidden_size"], 7, 10]))
        return draw(st.sampled_from(ARCHITECTURES[family])), options, length

    return draw_all()
