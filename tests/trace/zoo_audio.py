"""Models that hear, with and without a decoder that writes."""

from typing import Any

from tests.trace.species import IN_TURNS, Feed, Inputs, Species, Weights, noise, real, text
from tests.trace.zoo_pairs import BART

SOUND = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37, "vocab_size": 32,
    "conv_dim": [16, 12], "conv_stride": [4, 4], "conv_kernel": [5, 5], "num_conv_pos_embeddings": 6,
    "num_conv_pos_embedding_groups": 2, "num_feat_extract_layers": 2,
}  # fmt: skip


def audio(name: str, model: str, feed: Feed, **more: Any) -> Species:
    return Species(name, "audio", model, feed=feed, **({"sizes": SOUND} | more))


def waves(*lengths: int) -> Feed:
    """Sound of unequal length."""
    return lambda: {
        **noise("input_values", len(lengths), max(lengths))(),
        "attention_mask": real(lengths, max(lengths)),
    }


def dictated(sound: Feed, *lengths: int) -> Feed:
    """Sound, and the words written so far."""

    def feed() -> Inputs:
        return {**sound(), **{f"decoder_{name}": value for name, value in text(*lengths)().items()}}

    return feed


def from_means(outputs: Any, inputs: Inputs) -> Weights:
    """WavLM returns the mean over heads, repeated for each of them: (b, 1, q, k) is what it knows."""
    return [weights[:, :1] for weights in outputs.attentions]


WRITES = {"own": 4, "cross": 2, "fields": IN_TURNS}

AUDIO = [
    audio("Wav2Vec2", "Wav2Vec2Model", waves(320, 210)),
    audio(
        "Wav2Vec2 Conformer",
        "Wav2Vec2ConformerModel",
        waves(304, 180),
        sizes=SOUND | {"position_embeddings_type": "relative", "conv_depthwise_kernel_size": 3},
    ),
    audio("HuBERT", "HubertModel", waves(288, 190)),
    audio(
        "WavLM",
        "WavLMModel",
        waves(272, 170),
        sizes=SOUND | {"num_buckets": 8, "max_bucket_distance": 12},
        unfold=from_means,
    ),
    audio("UniSpeech", "UniSpeechModel", waves(256, 160)),
    audio("Data2Vec audio", "Data2VecAudioModel", waves(336, 220)),
    audio("SEW", "SEWModel", noise("input_values", 2, 400)),
    audio(
        "SEW-D",
        "SEWDModel",
        noise("input_values", 2, 416),
        sizes=SOUND | {"max_position_embeddings": 40, "position_buckets": 8},
    ),
    audio(
        "AST",
        "ASTModel",
        noise("input_values", 2, 26, 12),
        sizes={
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 37,
            "patch_size": 4,
            "frequency_stride": 4,
            "time_stride": 4,
            "max_length": 26,
            "num_mel_bins": 12,
        },
    ),
    audio(
        "Whisper",
        "WhisperModel",
        dictated(noise("input_features", 2, 10, 30), 9, 6),
        sizes=BART | {"num_mel_bins": 10, "max_source_positions": 15, "max_target_positions": 20},
        **WRITES,
    ),
    audio(
        "Speech2Text",
        "Speech2TextModel",
        dictated(noise("input_features", 2, 40, 8), 7, 5),
        sizes=BART
        | {"input_feat_per_channel": 8, "conv_channels": 20, "max_source_positions": 40, "max_target_positions": 20},
        **WRITES,
    ),
    audio(
        "Moonshine",
        "MoonshineModel",
        dictated(noise("input_values", 2, 4000), 8, 5),
        sizes={
            "vocab_size": 61,
            "hidden_size": 32,
            "intermediate_size": 37,
            "encoder_num_hidden_layers": 2,
            "decoder_num_hidden_layers": 2,
            "encoder_num_attention_heads": 4,
            "decoder_num_attention_heads": 2,
            "pad_token_id": 1,
        },
        **WRITES,
    ),
]
