"""What a generic builder cannot know of single models: settings by configuration class, inputs by model class."""

from typing import Any

import torch

from tests.trace.survey.inputs import BATCH, ids, noise

RESNET = {
    "use_timm_backbone": False,
    "use_pretrained_backbone": False,
    "backbone": None,
    "backbone_config": {
        "model_type": "resnet",
        "embedding_size": 8,
        "hidden_sizes": [8, 16, 24, 32],
        "depths": [1, 1, 1, 1],
        "out_features": ["stage2", "stage3", "stage4"],
        "layer_type": "basic",
    },
}
ROPE = {"rope_type": "default", "rope_theta": 10_000.0}
LAST = {**RESNET, "backbone_config": {**RESNET["backbone_config"], "out_features": ["stage4"]}}
SETTINGS: dict[str, dict[str, Any]] = {
    **{f"{name}Config": LAST for name in ("Detr", "ConditionalDetr", "DabDetr", "TableTransformer")},
    **{f"{name}Config": RESNET for name in ("DeformableDetr", "RTDetr", "RTDetrV2", "DFine", "OmDetTurbo")},
    **{f"{name}Config": {"rope_parameters": ROPE} for name in ("HunYuanDenseV1", "HunYuanMoEV1", "Ministral")},
    "SamConfig": {"prompt_encoder_config": {"hidden_size": 64, "image_size": 64, "patch_size": 16}},
    "EsmConfig": {"vocab_size": 97, "mask_token_id": 4, "pad_token_id": 1},
    "GPTNeoConfig": {"num_layers": 2, "attention_types": [[["global", "local"], 1]]},
    "NemotronConfig": {"num_key_value_heads": 2},
    "Lfm2MoeConfig": {"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"]},
    "AutoformerConfig": {"prediction_length": 4},
    "InformerConfig": {"prediction_length": 4},
    "TimeSeriesTransformerConfig": {"prediction_length": 4},
    "ChameleonConfig": {"vocabulary_map": {"<image>": 80}},
    "DeepseekV2Config": {"num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "topk_method": "greedy"},
    "Dots1Config": {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1},
}
FEEDS: dict[str, Any] = {
    "BrosModel": lambda config: {"input_ids": ids(BATCH, 11, seed=1), "bbox": torch.rand(BATCH, 11, 8)},
    "LxmertModel": lambda config: {
        "input_ids": ids(BATCH, 11, seed=1),
        "visual_feats": noise(BATCH, 5, config.visual_feat_dim),
        "visual_pos": noise(BATCH, 5, 4),
    },
    "IdeficsModel": lambda config: {
        "input_ids": ids(BATCH, 11, seed=1),
        "attention_mask": torch.ones(BATCH, 11, dtype=torch.long),
        "pixel_values": noise(BATCH, 1, 3, config.vision_config.image_size, config.vision_config.image_size),
        "image_attention_mask": torch.ones(BATCH, 11, 1, dtype=torch.long),
    },
    "TimesFmModel": lambda config: {
        "past_values": noise(BATCH, 128),
        "past_values_padding": torch.zeros(BATCH, 128),
        "freq": torch.zeros(BATCH, 1, dtype=torch.long),
    },
    "TimesFmModelForPrediction": lambda config: {
        "past_values": list(noise(BATCH, 96)),
        "freq": torch.zeros(BATCH, dtype=torch.long),
    },
}
