"""Encoders of text."""

from typing import Any

import torch

from tests.trace.species import Feed, Inputs, Species, Weights, text, unband, unpadded

SMALL = {
    "vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37,
    "max_position_embeddings": 80, "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3,
}  # fmt: skip
WIDE = SMALL | {"hidden_size": 48, "num_attention_heads": 3, "intermediate_size": 41}


def encoder(name: str, model: str, feed: Feed, **more: Any) -> Species:
    return Species(name, "encoder", model, more.pop("sizes", SMALL), feed, **more)


def with_global_tokens(*lengths: int) -> Feed:
    """The first token of both entries, and the sixth of the second one, look at and are seen from everywhere."""

    def feed() -> Inputs:
        inputs = text(*lengths)()
        everywhere = torch.zeros_like(inputs["attention_mask"])
        everywhere[:, 0] = everywhere[1, 5] = 1
        return {**inputs, "global_attention_mask": everywhere}

    return feed


def from_bands(outputs: Any, inputs: Inputs) -> Weights:
    """Longformer's weights as whole rows; those of global tokens stand in a list of their own, (b, h, k, global)."""
    everywhere = inputs.get("global_attention_mask", torch.zeros_like(inputs["attention_mask"])).bool()
    found = [unband(bands, everywhere) for bands in outputs.attentions]
    for weights, rows in zip(found, outputs.global_attentions or []):
        for entry, marked in enumerate(everywhere):
            for number, i in enumerate(marked.nonzero().flatten().tolist()):
                weights[entry, :, i] = rows[entry, :, :, number]
    return found


def from_scores(outputs: Any, inputs: Inputs) -> Weights:
    """SqueezeBERT returns its scores under the name of weights."""
    return [scores.softmax(-1) for scores in outputs.attentions]


CHUNKS = "its windows are multiplied in chunks, so that no product shows the map"
LONGFORMER = SMALL | {"attention_window": 8, "sep_token_id": 3}
BIGBIRD = SMALL | {"sep_token_id": 3, "max_position_embeddings": 96}
DEBERTA = SMALL | {"relative_attention": True, "max_relative_positions": 20}

ENCODERS = [
    encoder("BERT", "BertModel", text(13, 9)),
    encoder("RoBERTa", "RobertaModel", text(12, 7), sizes=WIDE),
    encoder("XLM-RoBERTa", "XLMRobertaModel", text(11, 6)),
    encoder("CamemBERT", "CamembertModel", text(10, 7, 3)),
    encoder(
        "DistilBERT",
        "DistilBertModel",
        text(14, 8),
        sizes={
            "vocab_size": 61,
            "dim": 36,
            "n_heads": 3,
            "n_layers": 2,
            "hidden_dim": 41,
            "max_position_embeddings": 40,
        },
    ),
    encoder("ALBERT", "AlbertModel", text(15, 9), sizes=SMALL | {"embedding_size": 16, "num_hidden_layers": 3}, own=3),
    encoder("ELECTRA", "ElectraModel", text(16, 11), sizes=WIDE | {"embedding_size": 16}),
    encoder("ERNIE", "ErnieModel", text(17, 8), sizes=WIDE),
    encoder("DeBERTa", "DebertaModel", text(9, 6), sizes=DEBERTA | {"pos_att_type": "c2p|p2c"}),
    encoder(
        "DeBERTa-v2",
        "DebertaV2Model",
        text(10, 6),
        sizes=DEBERTA
        | {"pos_att_type": ["p2c", "c2p"], "position_buckets": 8, "share_att_key": True, "norm_rel_ebd": "layer_norm"},
    ),
    encoder("MPNet", "MPNetModel", text(17, 12)),
    encoder("RoFormer", "RoFormerModel", text(13, 8), sizes=SMALL | {"embedding_size": 32}),
    encoder(
        "ConvBERT",
        "ConvBertModel",
        text(12, 8),
        sizes=SMALL | {"embedding_size": 32, "head_ratio": 2, "conv_kernel_size": 3},
    ),
    encoder(
        "SqueezeBERT",
        "SqueezeBertModel",
        text(11, 8),
        sizes=SMALL
        | {
            "embedding_size": 32,
            "q_groups": 2,
            "k_groups": 2,
            "v_groups": 2,
            "post_attention_groups": 1,
            "intermediate_groups": 1,
            "output_groups": 1,
            "intermediate_size": 36,
        },
        unfold=from_scores,
    ),
    encoder(
        "MobileBERT",
        "MobileBertModel",
        text(14, 10),
        sizes=SMALL
        | {"intra_bottleneck_size": 24, "num_attention_heads": 3, "embedding_size": 16, "true_hidden_size": 24},
        lively=0.8,
    ),
    encoder("CANINE", "CanineModel", text(16, 10), own=4),
    encoder("ESM", "EsmModel", text(14, 10), sizes=SMALL | {"mask_token_id": 4, "position_embedding_type": "rotary"}),
    encoder(
        "RemBERT", "RemBertModel", text(11, 7), sizes=SMALL | {"input_embedding_size": 24, "output_embedding_size": 24}
    ),
    encoder("Nomic BERT", "NomicBertModel", text(19, 7)),
    encoder("EuroBERT", "EuroBertModel", text(18, 8), sizes=SMALL | {"num_key_value_heads": 2, "mask_token_id": 4}),
    encoder(
        "ModernBERT",
        "ModernBertModel",
        text(21, 13),
        sizes=SMALL
        | {
            "num_hidden_layers": 3,
            "local_attention": 8,
            "global_attn_every_n_layers": 2,
            "cls_token_id": 2,
            "sep_token_id": 3,
        },
        own=3,
    ),
    encoder(
        "Funnel",
        "FunnelModel",
        text(16, 11),
        sizes={
            "vocab_size": 61,
            "block_sizes": [1, 1],
            "num_decoder_layers": 1,
            "d_model": 32,
            "n_head": 4,
            "d_head": 8,
            "d_inner": 37,
        },
        own=3,
    ),
    encoder(
        "XLNet",
        "XLNetModel",
        text(13, 9),
        sizes={"vocab_size": 61, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 37, "pad_token_id": 1},
    ),
    encoder("Longformer", "LongformerModel", text(24, 17), sizes=LONGFORMER, unfold=from_bands, refused=CHUNKS),
    encoder(
        "Longformer, global tokens",
        "LongformerModel",
        with_global_tokens(32, 21),
        sizes=LONGFORMER,
        unfold=from_bands,
        refused="one softmax for windows and another one for global tokens",
    ),
    encoder("BigBird", "BigBirdModel", text(18, 12), sizes=BIGBIRD | {"attention_type": "original_full"}),
    encoder(
        "BigBird, block sparse",
        "BigBirdModel",
        text(64, 51),
        sizes=BIGBIRD | {"attention_type": "block_sparse", "block_size": 4, "num_random_blocks": 2},
        fields=(),
        silent="while not training it sees the first block several times, and its own map counts that block once",
        refused="five softmaxes, one for each part of the sequence",
    ),
    encoder(
        "Nystromformer",
        "NystromformerModel",
        text(16, 16),
        sizes=SMALL | {"num_landmarks": 4, "segment_means_seq_len": 16},
        fields=(),
        silent="it returns one of three factors",
        refused="three softmaxes and an inverse in place of one map",
    ),
    encoder(
        "Reformer",
        "ReformerModel",
        unpadded(2, 16),
        sizes={
            "vocab_size": 61,
            "hidden_size": 32,
            "num_attention_heads": 4,
            "attention_head_size": 8,
            "feed_forward_size": 37,
            "attn_layers": ["local", "lsh"],
            "axial_pos_embds": False,
            "max_position_embeddings": 64,
            "local_attn_chunk_length": 4,
            "lsh_attn_chunk_length": 4,
            "num_buckets": 4,
            "hash_seed": 3,
        },
        fields=(),
        silent="it returns weights of sorted chunks",
        refused="keys are hashed into buckets and sorted",
    ),
    encoder(
        "YOSO",
        "YosoModel",
        text(14, 9),
        sizes=SMALL | {"use_expectation": True},
        fields=(),
        silent="it returns the mix",
        refused="no softmax: expected collisions of hashes",
    ),
    encoder(
        "FNet",
        "FNetModel",
        unpadded(2, 16),
        own=0,
        fields=(),
        silent="it has none",
        refused="no attention: a Fourier transform mixes",
    ),
]
