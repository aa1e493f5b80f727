"""Models that see, and models that see and read."""

from typing import Any

import torch

from tests.trace.species import IN_TURNS, Feed, Inputs, Species, noise, text

VIT = {
    "image_size": 20, "patch_size": 5, "num_channels": 3, "hidden_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 4, "intermediate_size": 37,
}  # fmt: skip
WIDE = VIT | {"hidden_size": 48, "num_attention_heads": 3, "patch_size": 4}
STAGES = {"num_encoder_blocks": 2, "depths": [1, 1], "hidden_sizes": [16, 24], "patch_sizes": [3, 3],
          "num_attention_heads": [2, 3], "mlp_ratios": [2, 2], "strides": [2, 2]}  # fmt: skip
WINDOWS = {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [2, 1], "num_heads": [2, 4], "window_size": 4,
           "drop_path_rate": 0.0}  # fmt: skip
READER = {
    "vocab_size": 61, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 37,
    "max_position_embeddings": 32, "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3,
}  # fmt: skip
BOTH = ("vision_model_output.attentions", "text_model_output.attentions")


def vision(name: str, model: str, feed: Feed, **more: Any) -> Species:
    return Species(name, "vision", model, feed=feed, **({"sizes": VIT} | more))


def multimodal(name: str, model: str, feed: Feed, sizes: dict[str, Any], **more: Any) -> Species:
    return Species(name, "multimodal", model, sizes, feed, **more)


def pictures(batch: int, size: int = 20) -> Feed:
    return noise("pixel_values", batch, 3, size, size)


def film(batch: int, frames: int, size: int = 16) -> Feed:
    return noise("pixel_values", batch, frames, 3, size, size)


def masked_pictures(batch: int) -> Feed:
    """Which patches a masked autoencoder keeps hangs on noise: the same each time."""
    return lambda: {**pictures(batch)(), **noise("noise", batch, 16)()}


def padded_pictures() -> Feed:
    """Two pictures of unequal size in one frame."""

    def feed() -> Inputs:
        inside = torch.zeros(2, 64, 64, dtype=torch.long)
        inside[0], inside[1, :48, :32] = 1, 1
        return {**pictures(2, 64)(), "pixel_mask": inside}

    return feed


def illustrated(*feeds: Feed) -> Feed:
    """Text and pictures together."""
    return lambda: {name: value for feed in feeds for name, value in feed().items()}


def llava() -> Feed:
    """Text in which tokens 60 stand for the patches of the picture."""

    def feed() -> Inputs:
        inputs = text(25, 22, side="left", vocabulary=60)()
        inputs["input_ids"][:, 4:20] = 60
        return {**inputs, **pictures(2)()}

    return feed


VISION = [
    vision("ViT", "ViTModel", pictures(2)),
    vision("DeiT", "DeiTModel", pictures(3)),
    vision("BEiT", "BeitModel", pictures(2), sizes=WIDE | {"use_relative_position_bias": True}),
    vision(
        "Data2Vec vision", "Data2VecVisionModel", pictures(2), sizes=VIT | {"use_shared_relative_position_bias": True}
    ),
    vision("DINOv2", "Dinov2Model", pictures(2), sizes=WIDE),
    vision("DINOv2, registers", "Dinov2WithRegistersModel", pictures(3), sizes=VIT | {"num_register_tokens": 3}),
    vision("DINOv3", "DINOv3ViTModel", pictures(3), sizes=VIT | {"num_register_tokens": 2}),
    vision("ViT-MAE", "ViTMAEModel", masked_pictures(2)),
    vision("ViT-MSN", "ViTMSNModel", pictures(2)),
    vision("I-JEPA", "IJepaModel", pictures(3), sizes=WIDE),
    vision("DPT", "DPTModel", pictures(2), sizes=VIT | {"backbone_out_indices": [0, 1], "neck_hidden_sizes": [8, 8]}),
    vision("YOLOS", "YolosModel", pictures(2), sizes=VIT | {"image_size": [20, 20], "num_detection_tokens": 6}),
    vision("VideoMAE", "VideoMAEModel", film(2, 4), sizes=VIT | {"image_size": 16, "patch_size": 8, "num_frames": 4}),
    vision(
        "ViViT", "VivitModel", film(2, 6), sizes=VIT | {"image_size": 16, "num_frames": 6, "tubelet_size": [2, 8, 8]}
    ),
    vision(
        "TimeSformer",
        "TimesformerModel",
        film(2, 3),
        sizes=VIT | {"image_size": 16, "patch_size": 8, "num_frames": 3},
        own=4,
        within=("TimesformerSelfAttention",),
    ),
    vision("Swin", "SwinModel", pictures(2, 32), sizes=WINDOWS, own=3, within=("SwinAttention",)),
    vision("Swin v2", "Swinv2Model", pictures(2, 32), sizes=WINDOWS, own=3, within=("Swinv2SelfAttention",)),
    vision("Segformer", "SegformerModel", pictures(2, 16), sizes=STAGES | {"sr_ratios": [4, 2]}),
    vision(
        "PVT",
        "PvtModel",
        pictures(2, 32),
        sizes=STAGES
        | {"image_size": 32, "patch_sizes": [4, 2], "strides": [4, 2], "sequence_reduction_ratios": [4, 1]},
    ),
    vision(
        "DETR",
        "DetrModel",
        padded_pictures(),
        own=4,
        cross=2,
        fields=IN_TURNS,
        lively=0.4,
        sizes={
            "backbone_config": {
                "model_type": "resnet",
                "embedding_size": 8,
                "hidden_sizes": [8, 12],
                "depths": [1, 1],
                "layer_type": "basic",
                "out_features": ["stage2"],
            },
            "num_queries": 7,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "d_model": 32,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 37,
            "decoder_ffn_dim": 41,
            "use_timm_backbone": False,
        },
    ),
    multimodal(
        "CLIP",
        "CLIPModel",
        illustrated(text(11, 7, vocabulary=60), pictures(2)),
        {"text_config": READER, "vision_config": VIT, "projection_dim": 20},
        own=4,
        fields=BOTH,
    ),
    multimodal(
        "SigLIP",
        "SiglipModel",
        illustrated(text(12, 9), pictures(2)),
        {"text_config": READER | {"projection_size": 32}, "vision_config": VIT},
        own=4,
        cross=1,
        within=("SiglipAttention", "MultiheadAttention"),
    ),
    multimodal(
        "BLIP",
        "BlipModel",
        illustrated(text(13, 8), pictures(2)),
        {"text_config": READER | {"sep_token_id": 3}, "vision_config": VIT, "projection_dim": 20},
        own=4,
        fields=BOTH,
    ),
    multimodal("ViLT", "ViltModel", illustrated(text(9, 6), pictures(2)), VIT | {"vocab_size": 61}),
    multimodal(
        "VisualBERT",
        "VisualBertModel",
        illustrated(text(10, 7), noise("visual_embeds", 2, 5, 14)),
        READER | {"visual_embedding_dim": 14},
    ),
    multimodal(
        "LLaVA",
        "LlavaModel",
        llava(),
        {
            "text_config": READER | {"model_type": "llama", "num_key_value_heads": 1},
            "image_token_index": 60,
            "vision_config": VIT | {"model_type": "clip_vision_model"},
            "image_seq_length": 16,
        },
        own=4,
        within=("CLIPAttention", "LlamaAttention"),
    ),
    multimodal(
        "LXMERT",
        "LxmertModel",
        illustrated(text(10, 7), noise("visual_feats", 2, 6, 15), noise("visual_pos", 2, 6, 4)),
        READER | {"l_layers": 1, "r_layers": 1, "x_layers": 1, "visual_feat_dim": 15},
        own=4,
        cross=2,
        within=("LxmertAttention",),
    ),
]
