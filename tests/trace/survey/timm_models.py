"""Models of timm: the smallest of each of its families that attends, and those that attend in another way."""

import importlib
from collections.abc import Iterator
from typing import Any

import torch

from tests.trace.survey.absent import pretend
from tests.trace.survey.inputs import BATCH, noise
from tests.trace.survey.library import Attempt, Library

HEIGHT, WIDTH = 64, 96
FLAT: dict[str, Any] = {"depth": 2, "img_size": (HEIGHT, WIDTH)}
SIZED: dict[str, Any] = {"img_size": (HEIGHT, WIDTH)}
ONES: dict[str, Any] = {"depths": (1, 1, 1, 1)}


def alike(settings: dict[str, Any], names: str) -> dict[str, dict[str, Any]]:
    """The same settings for each of these models."""
    return dict.fromkeys(names.split(), settings)


# Model: settings that make it small. What its constructor does not take is left out: then it has its own sizes.
MODELS: dict[str, dict[str, Any]] = {
    **alike(
        FLAT,
        """
        vit_tiny_patch16_224 vit_small_patch16_18x2_224 vit_base_patch16_rpn_224 vit_wee_patch16_reg1_gap_256
        vit_pwee_patch16_reg1_gap_256 vit_dwee_patch16_reg1_gap_256 vit_medium_patch16_reg4_gap_256
        vit_base_patch32_clip_224 vit_base_patch32_siglip_256 vit_small_patch14_reg4_dinov2 flexivit_small
        beit_base_patch16_224 beit3_base_patch16_224 deit_tiny_distilled_patch16_224 deit3_small_patch16_224
        eva02_tiny_patch14_224 vit_small_patch16_dinov3 vit_small_patch16_rope_mixed_224 vit_pe_core_tiny_patch16_384
        vit_medium_patch16_rope_reg1_gap_256 test_vit test_vit2 test_vit3 vit_relpos_small_patch16_224
        vit_srelpos_small_patch16_224 vit_relpos_medium_patch16_cls_224 cait_xxs24_224 samvit_base_patch16_224
        xcit_nano_12_p16_224 tnt_s_patch16_224 convit_tiny vit_tiny_r_s16_p8_224 vit_small_resnet26d_224
        naflexvit_base_patch16_gap naflexvit_base_patch16_map aimv2_large_patch14_224 gemma4_vit_167m qwen3_vit_88m
        qwen3_vit_88m_merge
        """,
    ),
    **alike({**FLAT, "embed_dim": 192, "num_heads": 3}, "deepseek_vit_412m_enc"),
    **alike(
        {**SIZED, "depths": (2, 1, 1, 1)}, "swin_tiny_patch4_window7_224 swinv2_tiny_window8_256 swinv2_cr_tiny_ns_224"
    ),
    **alike({"img_size": 224, "depths": (2, 1, 1, 1)}, "swin_s3_tiny_224"),
    **alike({**SIZED, "serial_depths": (1, 1, 1, 1), "parallel_depth": 1}, "coat_tiny coat_lite_tiny"),
    **alike({"img_size": 96}, "crossvit_9_240 crossvit_9_dagger_240"),
    "hiera_tiny_224": {"img_size": (64, 96)},
    "sam2_hiera_tiny": {"img_size": (128, 128)},
    "hieradet_small": {"img_size": (128, 128)},
    "mvitv2_tiny": {"img_size": (HEIGHT, WIDTH), **ONES},
    "mvitv2_small_cls": {"img_size": (HEIGHT, WIDTH), "depths": (1, 1, 1, 1)},
    "nest_tiny": {"img_size": 64, "depths": (1, 1, 1)},
    "nest_tiny_jx": {"img_size": 128, "depths": (1, 1, 1)},
    "twins_pcpvt_small": {**SIZED, **ONES},
    "twins_svt_small": {**SIZED, "depths": (1, 1, 2, 1)},
    "visformer_tiny": {"img_size": 64, "depth": 1},
    "volo_d1_224": {"img_size": 64, "layers": (1, 1, 1, 1)},
    "pvt_v2_b0": ONES,
    "pvt_v2_b2_li": ONES,
    "pit_ti_224": {"img_size": 64},
    "pit_ti_distilled_224": {"img_size": 64},
    "davit_tiny": {"depths": (1, 1, 1, 1)},
    "edgenext_xx_small": {},
    "efficientformer_l1": {},
    "efficientformerv2_s0": {"img_size": 64},
    "efficientvit_b0": {},
    "efficientvit_m0": {"img_size": 64},
    "efficientvit_l1": {},
    "fastvit_sa12": {"layers": (1, 1, 1, 1)},
    "gcvit_xxtiny": {"img_size": (HEIGHT, WIDTH), "depths": (1, 1, 1, 1)},
    "levit_128s": {"img_size": 64},
    "levit_conv_128s": {"img_size": 64},
    "caformer_s18": {"depths": (1, 1, 1, 1)},
    "mobilevit_xxs": {},
    "mobilevitv2_050": {},
    "mobilenetv4_hybrid_medium": {},
    "nextvit_small": {"depths": (1, 1, 2, 1)},
    "repvit_m0_9": {},
    "shvit_s1": {"depths": (1, 1, 1)},
    "swiftformer_xs": {"depths": (1, 1, 1, 1)},
    "tiny_vit_5m_224": {"img_size": (HEIGHT, WIDTH)},
    "vitamin_small_224": {"img_size": 64},
    "coatnet_nano_rw_224": {"img_size": (HEIGHT, WIDTH)},
    "coatnet_rmlp_nano_rw_224": {"img_size": (HEIGHT, WIDTH)},
    "maxvit_pico_rw_256": {"img_size": (HEIGHT, WIDTH)},
    "maxvit_tiny_tf_224": {"img_size": 64, "depths": (1, 1, 1, 1)},
    "maxxvit_rmlp_nano_rw_256": {"img_size": (HEIGHT, WIDTH)},
    "maxxvitv2_nano_rw_256": {"img_size": (HEIGHT, WIDTH)},
    "botnet26t_256": {"img_size": (128, 192)},
    "halonet26t": {"img_size": 256},
    "eca_halonext26ts": {"img_size": 256},
    "sehalonet33ts": {"img_size": 256},
    "lambda_resnet26t": {"img_size": (HEIGHT, WIDTH)},
    "bat_resnext26ts": {"img_size": 256},
    "resnet50_clip": {"img_size": (HEIGHT, WIDTH)},
    "gcresnet33ts": {},
    "csatv2": {},
    "cpubone_nano": {},
    "efficientvim_m1": {},
    "iformer_t": {},
    "lowformer_b0": {},
    "mobilenetv5_base": {},
    "sequencer2d_s": {},
}  # fmt: skip
LARGEST = 80_000_000


def attempts(name: str) -> Iterator[Attempt | str]:
    import timm

    settings = dict(MODELS[name])
    size = settings.get("img_size", (HEIGHT, WIDTH))
    for given in (settings, {**settings, "img_size": None}, {}):
        given = {key: value for key, value in given.items() if value is not None}
        try:
            with torch.device("meta"):
                parameters = sum(x.numel() for x in timm.create_model(name, num_classes=7, **given).parameters())
            if parameters > LARGEST:
                raise ValueError(f"still {parameters:,} parameters")
            torch.manual_seed(0)
            model = timm.create_model(name, num_classes=7, **given).eval()
        except Exception as error:
            yield f"{type(error).__name__}: {str(error)[:200]}"
            continue
        sizes = [size if isinstance(size, tuple) else (size, size), (64, 64), (128, 128), (224, 224)]
        yield Attempt(model, [{"x": noise(BATCH, 3, *one)} for one in sizes], facts={"settings": sorted(given)})


def load() -> object:
    pretend("torchvision")
    return importlib.import_module("timm")


TIMM = Library("timm", "timm", load, lambda: [*MODELS], attempts)
