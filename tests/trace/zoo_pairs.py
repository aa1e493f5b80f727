"""Encoders with decoders."""

from typing import Any

import torch

from tests.trace.species import IN_TURNS, Feed, Inputs, Species, Weights, in_order, pair, unband

BART = {
    "vocab_size": 61, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 37, "decoder_ffn_dim": 41, "max_position_embeddings": 40,
    "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3, "decoder_start_token_id": 2, "forced_eos_token_id": 3,
}  # fmt: skip
T5 = {
    "vocab_size": 61, "d_model": 32, "d_kv": 7, "d_ff": 37, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 12, "pad_token_id": 1,
    "decoder_start_token_id": 1,
}  # fmt: skip


def pairs(name: str, model: str, feed: Feed, **more: Any) -> Species:
    usual = {"own": 4, "cross": 2, "fields": IN_TURNS, "sizes": BART}
    return Species(name, "encoder-decoder", model, feed=feed, **(usual | more))


def from_bands(outputs: Any, inputs: Inputs) -> Weights:
    """The encoder's weights are bands, as Longformer's."""
    nowhere = torch.zeros_like(inputs["attention_mask"]).bool()
    return [*(unband(bands, nowhere) for bands in outputs.encoder_attentions), *in_order(outputs, IN_TURNS[1:])]


def from_blocks(outputs: Any, inputs: Inputs) -> Weights:
    """LongT5's encoder looks in blocks, (b, block, h, q, k): each block is one entry of the batch."""
    blocks = [weights.flatten(0, 1) for weights in outputs.encoder_attentions]
    return [*blocks, *in_order(outputs, IN_TURNS[1:])]


def from_decoder(outputs: Any, inputs: Inputs) -> Weights:
    """Pegasus X returns dictionaries for its encoder, of which no map is seen anyway."""
    return [*(weights["local"] for weights in outputs.encoder_attentions), *in_order(outputs, IN_TURNS[1:])]


def from_scores(outputs: Any, inputs: Inputs) -> Weights:
    """ProphetNet returns scores for weights, but for the self-attention of its decoder."""
    encoder = [scores.softmax(-1) for scores in outputs.encoder_attentions]
    cross = [scores.softmax(-1) for scores in outputs.cross_attentions]
    return [*encoder, *(weights for turn in zip(outputs.decoder_attentions, cross) for weights in turn)]


PAIRS = [
    pairs("T5", "T5Model", pair((13, 9), (8, 5)), sizes=T5),
    pairs("T5 v1.1", "T5Model", pair((12, 7), (9, 6)), sizes=T5 | {"feed_forward_proj": "gated-gelu"}),
    pairs("mT5", "MT5Model", pair((11, 8), (7, 4)), sizes=T5),
    pairs("UMT5", "UMT5Model", pair((14, 9), (10, 6)), sizes=T5),
    pairs(
        "LongT5, local",
        "LongT5Model",
        pair((16, 9), (7, 5)),
        sizes=T5 | {"local_radius": 3, "encoder_attention_type": "local"},
        unfold=from_blocks,
    ),
    pairs(
        "Switch Transformers",
        "SwitchTransformersModel",
        pair((15, 9), (7, 3)),
        sizes=T5
        | {
            "num_experts": 2,
            "num_sparse_encoder_layers": 1,
            "num_sparse_decoder_layers": 1,
            "router_jitter_noise": 0.0,
        },
    ),
    pairs("BART", "BartModel", pair((12, 8), (9, 5))),
    pairs("mBART", "MBartModel", pair((13, 7), (8, 6))),
    pairs("PLBart", "PLBartModel", pair((15, 8), (6, 4))),
    pairs("MVP", "MvpModel", pair((16, 9), (7, 6))),
    pairs("Marian", "MarianModel", pair((11, 9), (7, 5))),
    pairs("Pegasus", "PegasusModel", pair((14, 8), (9, 7))),
    pairs("M2M100", "M2M100Model", pair((10, 8), (7, 6))),
    pairs(
        "NLLB MoE",
        "NllbMoeModel",
        pair((14, 10), (8, 5)),
        sizes=BART | {"num_experts": 2, "encoder_sparse_step": 2, "decoder_sparse_step": 2, "expert_capacity": 32},
    ),
    pairs(
        "FSMT",
        "FSMTModel",
        pair((12, 9), (7, 5)),
        sizes={name: size for name, size in BART.items() if name != "vocab_size"}
        | {"src_vocab_size": 61, "tgt_vocab_size": 61, "langs": ["en", "de"]},
    ),
    pairs("BlenderBot", "BlenderbotModel", pair((15, 9), (8, 7))),
    pairs("BlenderBot small", "BlenderbotSmallModel", pair((15, 11), (10, 7))),
    pairs(
        "LED",
        "LEDModel",
        pair((16, 11), (7, 5)),
        sizes=BART
        | {"attention_window": 8, "max_encoder_position_embeddings": 40, "max_decoder_position_embeddings": 40},
        unfold=from_bands,
        refused="the windows of its encoder are multiplied in chunks, so that no product shows the map",
        unseen=(0, 1),
    ),
    pairs(
        "BigBird-Pegasus",
        "BigBirdPegasusModel",
        pair((12, 7), (8, 5)),
        sizes=BART | {"attention_type": "original_full"},
    ),
    pairs(
        "Pegasus X",
        "PegasusXModel",
        pair((16, 11), (8, 5)),
        sizes=BART | {"block_size": 4, "num_global_tokens": 2, "stagger_local_blocks": True},
        unfold=from_decoder,
        refused="its encoder takes one softmax for blocks and another one for global tokens",
        unseen=(0, 1),
    ),
    pairs(
        "ProphetNet",
        "ProphetNetModel",
        pair((12, 9), (7, 5)),
        sizes={
            "vocab_size": 61,
            "hidden_size": 32,
            "encoder_ffn_dim": 37,
            "num_encoder_layers": 2,
            "num_encoder_attention_heads": 4,
            "decoder_ffn_dim": 41,
            "num_decoder_layers": 2,
            "num_decoder_attention_heads": 2,
            "max_position_embeddings": 40,
            "ngram": 2,
            "num_buckets": 8,
            "relative_max_distance": 12,
            "pad_token_id": 1,
        },
        unfold=from_scores,
        refused="the self-attention of its decoder takes two softmaxes, one for each stream",
        unseen=(2, 4),
    ),
]
