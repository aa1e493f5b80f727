"""Models of vit-pytorch: one for each of its files that defines attention of its own, and some settings of these."""

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from tests.trace.survey.absent import pretend
from tests.trace.survey.inputs import BATCH, Inputs, noise
from tests.trace.survey.library import Attempt, Library

HEIGHT, WIDTH = 64, 96
PICTURE = (HEIGHT, WIDTH)
# By the name of an argument, wherever a constructor asks for it.
USUAL: dict[str, Any] = {
    "image_size": PICTURE, "img_size": PICTURE, "patch_size": 16, "num_classes": 7, "dim": 48, "depth": 2, "heads": 4,
    "dim_head": 12, "mlp_dim": 56, "cls_depth": 2, "seq_len": 44, "frames": 4, "image_patch_size": 16,
    "frame_patch_size": 2, "spatial_depth": 2, "temporal_depth": 2, "max_frames": 4,
}  # fmt: skip
FOUR = {"dim": (32, 64, 96, 128), "depth": (2, 1, 1, 1)}
# File: what it needs besides or instead; its class and what it is fed, where these are not the usual ones.
MODELS: dict[str, dict[str, Any]] = {
    "ats_vit": {"max_tokens_per_depth": (24, 13)},
    "attn_residual_with_dca_simple_vit": {},
    "cait": {"class": "CaiT", "image_size": 64, "feed": "square"},
    "cct": {
        "img_size": PICTURE, "embedding_dim": 48, "num_layers": 2, "num_heads": 4, "mlp_ratio": 2.0, "class": "CCT",
    },
    "cct_3d": {
        "img_size": 64, "num_frames": 4, "embedding_dim": 48, "num_layers": 2, "num_heads": 4, "mlp_ratio": 2.0,
        "class": "CCT", "feed": "square video",
    },
    "cross_vit": {
        "image_size": 64, "sm_dim": 48, "lg_dim": 56, "sm_patch_size": 8, "lg_patch_size": 16, "sm_enc_heads": 4,
        "lg_enc_heads": 2, "lg_enc_depth": 1, "class": "CrossViT", "feed": "square",
    },
    "crossformer": {
        **FOUR, "local_window_size": 2, "global_window_size": (4, 2, 2, 1), "class": "CrossFormer",
        "feed": "large square",
    },
    "cvt": {
        "class": "CvT", "s2_heads": 2, "s3_heads": 4, "s3_depth": 2, "s1_emb_dim": 16, "s2_emb_dim": 48,
        "s3_emb_dim": 96,
    },
    "deepvit": {"image_size": 64, "feed": "square"},
    "efficient": {"transformer": "encoder of torch"},
    "jet_vit": {"attn_layers": ["WA", "FA"], "window_size": 2},
    "jet_vit: linear": {"attn_layers": ["LA", "FA"], "window_size": 2},
    "jumbo_vit": {"class": "JumboViT"},
    "learnable_memory_vit": {},
    "levit": {"image_size": 64, "dim": (32, 48, 64), "depth": 1, "heads": (2, 3, 4), "mlp_mult": 2, "feed": "square"},
    "levjepa": {"class": "VideoTransformer", "image_size": 64, "feed": "square video"},
    "levjepa_nd": {"class": "NDTransformer", "ndim": 2, "input_shape": PICTURE},
    "local_vit": {"image_size": 64, "feed": "square"},
    "look_vit": {"image_size": 64, "highres_patch_size": 8, "class": "LookViT", "feed": "square"},
    "looped_vit": {
        "class": "LoopedViT", "pre_loop_depth": 1, "num_looped_blocks": 1, "post_loop_depth": 1, "loop_depth": 2,
        "image_size": PICTURE, "patch_size": 16, "mlp_dim": 56, "dim_head": 12, "heads": 4,
    },
    "mae": {"around": "vit", "decoder_dim": 40},
    "max_vit": {"dim": 16, "depth": (1, 1), "dim_head": 8, "window_size": 2, "class": "MaxViT"},
    "max_vit_with_registers": {"dim": 16, "depth": (1, 1), "dim_head": 8, "window_size": 2, "class": "MaxViT"},
    "mobile_vit": {
        "dims": [24, 32, 40], "channels": [8, 8, 16, 16, 16, 16, 24, 24, 32, 32, 48], "class": "MobileViT",
    },
    "mp3": {},
    "na_vit": {"image_size": 96, "feed": "ragged groups"},
    "na_vit_nested_tensor": {"image_size": 96, "feed": "ragged"},
    "na_vit_nested_tensor_3d": {"image_size": 96, "feed": "ragged volumes"},
    "nest": {
        "image_size": 64, "patch_size": 4, "dim": 24, "heads": 3, "num_hierarchies": 3, "block_repeats": (1, 1, 2),
        "feed": "square", "class": "NesT",
    },
    "normalized_vit": {"class": "nViT", "image_size": 64, "feed": "square"},
    "parallel_vit": {},
    "pit": {"image_size": 64, "depth": (1, 1), "patch_size": 8, "class": "PiT", "feed": "square"},
    "regionvit": {**FOUR, "window_size": 4, "class": "RegionViT", "feed": "large square"},
    "rvt": {"image_size": 64, "class": "RvT", "feed": "square"},
    "scalable_vit": {
        "dim": 16, "heads": (2, 4, 4, 4), "depth": (1, 1, 1, 1), "reduction_factor": (4, 2, 2, 1),
        "window_size": (4, 4, None, None), "class": "ScalableViT",
    },
    "sep_vit": {
        "dim": 16, "dim_head": 8, "heads": (1, 2, 4), "depth": (1, 1, 1), "window_size": 7, "class": "SepViT",
        "feed": "square of 112",
    },
    "simmim": {"around": "vit"},
    "simple_flash_attn_vit": {},
    "simple_flash_attn_vit_3d": {"feed": "video"},
    "simple_uvit": {"class": "SimpleUViT"},
    "simple_vit": {},
    "simple_vit_1d": {"patch_size": 4, "feed": "series"},
    "simple_vit_3d": {"feed": "video"},
    "simple_vit_attn_residual": {"class": "SimpleViTAttnResidual"},
    "simple_vit_orthog_residual_update": {},
    "simple_vit_with_fft": {"freq_patch_size": 16},
    "simple_vit_with_hyper_connections": {"num_residual_streams": 3},
    "simple_vit_with_patch_dropout": {},
    "simple_vit_with_qk_norm": {},
    "simple_vit_with_register_tokens": {},
    "simple_vit_with_relative_proj_pos_bias": {},
    "simple_vit_with_sparse_gating": {"class": "SimpleViTWithSparseGating"},
    "simple_vit_with_specialized_cls": {},
    "simple_vit_with_value_residual": {},
    "t2t": {"depth": 2, "heads": 4, "mlp_dim": 56, "image_size": 64, "class": "T2TViT", "feed": "square"},
    "twins_svt": {
        **{f"s{i}_emb_dim": 16 * i for i in (1, 2, 3, 4)}, **{f"s{i}_depth": 1 for i in (1, 2, 3, 4)},
        **{f"s{i}_local_patch_size": 1 for i in (3, 4)}, "s1_local_patch_size": 4, "s2_local_patch_size": 4,
        "s1_global_k": 4, "s2_global_k": 4, "s3_global_k": 2, "s4_global_k": 1, "class": "TwinsSVT",
    },
    "vaat": {},
    "vat": {},
    "vat_siglip": {"image_size": 64, "class": "SigLIP", "feed": "square"},
    "vit": {},
    "vit_1d": {"patch_size": 4, "feed": "series"},
    "vit_3d": {"feed": "video"},
    "vit_5": {},
    "vit_detpool": {"class": "ViTDetPool"},
    "vit_for_small_dataset": {},
    "vit_nd": {"class": "ViTND", "ndim": 2, "input_shape": PICTURE},
    "vit_nd_pope": {"class": "ViTND", "ndim": 2, "input_shape": PICTURE},
    "vit_nd_rotary": {"class": "ViTND", "ndim": 2, "input_shape": PICTURE},
    "vit_with_decorr": {},
    "vit_with_keel_post_ln": {},
    "vit_with_patch_dropout": {},
    "vit_with_patch_merger": {"patch_merge_layer": 1},
    "vivit": {"class": "ViViT", "feed": "video"},
    "vivit: in turns": {"class": "ViViT", "feed": "video", "variant": "factorized_self_attention"},
    "vivit_with_moss": {"class": "ViViT", "feed": "video"},
    "wwt": {"class": "WWT", "num_slots": 5},
    "xcit": {"class": "XCiT"},
}  # fmt: skip


def ragged() -> list[Tensor]:
    return [noise(3, 64, 96), noise(3, 48, 64), noise(3, 96, 32)]


FEEDS: dict[str, Any] = {
    "picture": lambda: noise(BATCH, 3, HEIGHT, WIDTH),
    "square": lambda: noise(BATCH, 3, 64, 64),
    "large square": lambda: noise(BATCH, 3, 128, 128),
    "square of 112": lambda: noise(BATCH, 3, 112, 112),
    "video": lambda: noise(BATCH, 3, 4, HEIGHT, WIDTH),
    "square video": lambda: noise(BATCH, 3, 4, 64, 64),
    "series": lambda: noise(BATCH, 3, 44),
    "ragged": ragged,
    "ragged groups": lambda: [[one] for one in ragged()],
    "ragged volumes": lambda: [noise(3, 4, 64, 96), noise(3, 2, 48, 64), noise(3, 4, 96, 32)],
}


def attempts(name: str) -> Iterator[Attempt | str]:
    settings = dict(MODELS[name])
    file, feed = name.partition(":")[0], settings.pop("feed", "picture")
    torch.manual_seed(0)
    try:
        module = importlib.import_module(f"vit_pytorch.{file}")
        model = make(module, settings).eval()
    except Exception as error:
        yield f"{type(error).__name__}: {str(error)[:200]}"
        return
    first = next(iter(inspect.signature(model.forward).parameters))
    inputs: Inputs = {first: FEEDS[feed]()}
    yield Attempt(model, [inputs], facts={"class": type(model).__name__})


def make(module: Any, settings: dict[str, Any]) -> Any:
    """The class that stands in the file, with what it asks for."""
    around, wanted = settings.pop("around", None), settings.pop("class", None)
    if around is not None:
        inner = make(importlib.import_module(f"vit_pytorch.{around}"), {})
        cls = next(one for name, one in vars(module).items() if name.lower() == module.__name__.rpartition(".")[2])
        return cls(encoder=inner, **settings)
    if wanted is None:
        own = [one for one in vars(module).values() if getattr(one, "__module__", "") == module.__name__]
        wanted = next(one.__name__ for one in reversed(own) if inspect.isclass(one) and "vi" in one.__name__.lower())
    cls = getattr(module, wanted)
    if settings.get("transformer") == "encoder of torch":
        layer = torch.nn.TransformerEncoderLayer(48, 4, 56, batch_first=True)
        settings["transformer"] = torch.nn.TransformerEncoder(layer, 2)
    names = inspect.signature(cls.__init__).parameters
    required = {name for name, one in names.items() if one.default is one.empty or name == "dim_head"}
    return cls(**{**{name: value for name, value in USUAL.items() if name in required}, **settings})


def load() -> object:
    pretend("torchvision")
    return importlib.import_module("vit_pytorch")


VIT_PYTORCH = Library("vit-pytorch", "vit_pytorch", load, lambda: [*MODELS], attempts)
