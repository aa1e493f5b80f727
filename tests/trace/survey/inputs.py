"""Small inputs of any model of `transformers`, by the arguments that its forward pass names."""

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from tests.trace.survey.sizes import TEXT

Inputs = dict[str, Any]
BATCH, SOURCE, TARGET, FRAMES = 3, 11, 7, 5


def candidates(model: nn.Module, config: Any) -> Iterator[Inputs]:
    """What the model may be fed, the fullest first; not each is understood by each model."""
    names = inspect.signature(model.forward).parameters
    required = [
        name
        for name, one in names.items()
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
    ]
    media: list[dict[str, Tensor]] = []
    if "image_grid_thw" in names and "pixel_values" in names:
        media += list(patches(config))
    for word, make in MEDIA.items():
        if word in names:
            media += make(config)
    texts = list(text_inputs(names))
    if "mm_token_type_ids" in names:
        texts = [{**one, "mm_token_type_ids": torch.zeros_like(one["input_ids"])} for one in texts]
    others = {
        name: make(config) for name, make in OTHERS.items() if name in required or (name == "bbox" and name in names)
    }
    for one in media:
        for text in texts or [{}]:
            yield {**text, **one, **others}
    for text in texts:
        yield {**text, **others}
    if media and texts:
        for one in media:
            yield {**one, **others}
    if not media and not texts and others:
        yield others
    if "use_cache" in names:
        yield from ({**text, **others, "use_cache": False} for text in texts[:1])


def text_inputs(names: Any) -> Iterator[Inputs]:
    decoder = {"decoder_input_ids": ids(BATCH, TARGET, seed=2)} if "decoder_input_ids" in names else {}
    if "input_ids" in names:
        yield (
            {
                "input_ids": ids(BATCH, SOURCE, seed=1),
                "attention_mask": torch.ones(BATCH, SOURCE, dtype=torch.long),
                **decoder,
            }
            if "attention_mask" in names
            else {"input_ids": ids(BATCH, SOURCE, seed=1), **decoder}
        )
        yield {"input_ids": ids(BATCH, SOURCE, seed=1), **decoder}
        yield {"input_ids": ids(BATCH, SOURCE, seed=1)}
    elif decoder:
        yield decoder


def ids(*shape: int, seed: int) -> Tensor:
    return torch.randint(*TEXT, shape, generator=torch.Generator().manual_seed(seed))


def noise(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def first(config: Any, *names: str, default: Any = None) -> Any:
    """The first setting of one of these names in a configuration or in those inside it."""
    places = [config, *(getattr(config, inner) for inner in dir_configs(config))]
    for name in names:
        for place in places:
            value = getattr(place, name, None)
            if value is not None:
                return value
    return default


def dir_configs(config: Any) -> list[str]:
    return [name for name, value in vars(config).items() if hasattr(value, "to_dict") and hasattr(value, "model_type")]


def picture_size(config: Any) -> tuple[int, int]:
    size = first(config, "image_size", "img_size", default=64)
    size = size if isinstance(size, list | tuple) else (size, size)
    if isinstance(size, dict):
        size = (size["height"], size["width"])
    return tuple(size)[-2:]  # type: ignore[return-value]


def pictures(config: Any) -> list[dict[str, Tensor]]:
    channels, (height, width) = first(config, "num_channels", "in_chans", default=3), picture_size(config)
    channels = channels if isinstance(channels, int) else 3
    frames = first(config, "num_frames", default=4)
    plain = {"pixel_values": noise(BATCH, channels, height, width)}
    return [
        plain,
        {"pixel_values": noise(BATCH, frames, channels, height, width)},
        {"pixel_values": noise(BATCH, channels, 64, 64)},
        {"pixel_values": noise(BATCH, channels, 96, 64)},
        {
            "pixel_values": noise(BATCH, 2, channels, height, width),
            "image_sizes": torch.tensor([[height, width]] * BATCH),
        },
        {"pixel_values": noise(BATCH, 3, 224, 224)},
    ]


def videos(config: Any) -> list[dict[str, Tensor]]:
    channels, (height, width) = first(config, "num_channels", default=3), picture_size(config)
    frames = first(config, "num_frames", "frames_per_clip", default=4)
    return [{"pixel_values_videos": noise(BATCH, frames, channels, height, width)}]


def spectra(config: Any) -> list[dict[str, Tensor]]:
    mel = first(
        config,
        "num_mel_bins",
        "n_mels",
        "input_feat_per_channel",
        "num_hidden_mel",
        "feature_size",
        "input_dim",
        "feature_projection_input_dim",
        default=80,
    )
    length = 2 * first(config, "max_source_positions", default=32)
    return [
        {"input_features": noise(BATCH, mel, length)},
        {"input_features": noise(BATCH, length + 6, mel)},
        {"input_features": noise(BATCH, length, mel), "attention_mask": torch.ones(BATCH, length, dtype=torch.long)},
    ]


def sounds(config: Any) -> list[dict[str, Tensor]]:
    mel = first(config, "num_mel_bins", default=None)
    wide = [] if mel is None else [{"input_values": noise(BATCH, first(config, "max_length", default=64), mel)}]
    return [*wide, {"input_values": noise(BATCH, 7200)}, {"input_values": noise(BATCH, 1, 7200)}]


def patches(config: Any) -> Iterator[dict[str, Tensor]]:
    """Pictures cut into patches beforehand, as Qwen2-VL reads them: one of 4 × 6 patches for each entry."""
    vision = first(config, "vision_config", default=config)
    size, time = getattr(vision, "patch_size", 14), getattr(vision, "temporal_patch_size", 2)
    channels = getattr(vision, "in_channels", None) or getattr(vision, "in_chans", None) or 3
    grid = torch.tensor([[1, 4, 6]] * BATCH)
    for depth in (channels * time * size * size, channels * size * size):
        yield {"pixel_values": noise(BATCH * 24, depth), "image_grid_thw": grid}
    yield {"pixel_values": noise(BATCH * 24, channels, size, size), "image_grid_thw": grid}


def series(config: Any) -> list[dict[str, Tensor]]:
    """A number, or several, for each point in time."""
    length = first(config, "context_length", default=32)
    lags = max(first(config, "lags_sequence", default=[0]))
    size = first(config, "input_size", "num_input_channels", default=1)
    seen = length + lags
    known = first(config, "num_time_features", default=0)
    lagged = {
        "past_values": noise(BATCH, seen) if size == 1 else noise(BATCH, seen, size),
        "past_time_features": noise(BATCH, seen, known),
        "past_observed_mask": torch.ones(BATCH, seen) if size == 1 else torch.ones(BATCH, seen, size),
        "future_values": noise(BATCH, first(config, "prediction_length", default=4) or 4),
        "future_time_features": noise(BATCH, first(config, "prediction_length", default=4) or 4, known),
    }
    return [lagged, {"past_values": noise(BATCH, length, size)}, {"past_values": noise(BATCH, length)}]


MEDIA = {
    "pixel_values": pictures,
    "pixel_values_videos": videos,
    "input_features": spectra,
    "input_values": sounds,
    "past_values": series,
    "audio_values": lambda config: [{"audio_values": noise(BATCH, 1, 7200)}],
    "waveform": lambda config: [{"waveform": noise(BATCH, 7200)}],
    "inputs": lambda config: [{"inputs": ids(BATCH, SOURCE, seed=1)}],
}
OTHERS = {
    "inputs_embeds": lambda config: noise(BATCH, SOURCE, first(config, "hidden_size", "d_model", default=64)),
    "hidden_states": lambda config: noise(BATCH, SOURCE, first(config, "hidden_size", "d_model", default=64)),
    "query_embeds": lambda config: noise(BATCH, 5, first(config, "hidden_size", default=64)),
    "encoder_hidden_states": lambda config: noise(
        BATCH, 9, first(config, "encoder_hidden_size", "cross_attention_hidden_size", "hidden_size", default=64)
    ),
    "bbox": lambda config: torch.sort(ids(BATCH, SOURCE, 4, seed=4), -1).values,
    "visual_feats": lambda config: noise(BATCH, 5, first(config, "visual_feat_dim", default=64)),
    "visual_pos": lambda config: noise(BATCH, 5, 4),
    "noise": lambda config: noise(BATCH, 32),
    "timestep": lambda config: torch.tensor([1, 2, 3]),
    "task_inputs": lambda config: ids(BATCH, 9, seed=3),
    "conditioning_embeds": lambda config: noise(BATCH, 5, 64),
    "audio_codes": lambda config: ids(BATCH, 1, 13, seed=3),
}
TOO_FEW = re.compile(r"tokens:? (\d+),? features:? (?:torch\.Size\(\[)?(\d+)")
LIMIT = 6


def feed(inputs_of: Iterable[Inputs], config: Any, run: Any) -> tuple[Inputs, list[str]]:
    """The first inputs that `run` survives; what each attempt said where none does."""
    said: list[str] = []
    for inputs in inputs_of:
        for _ in range(LIMIT):
            try:
                run(inputs)
            except Exception as error:
                more = with_places(inputs, str(error), config)
                if more is None:
                    said.append(f"{'+'.join(inputs)}: {type(error).__name__}: {str(error)[:200]}")
                    break
                inputs = more
            else:
                return inputs, said
    return {}, said


def with_places(inputs: Inputs, said: str, config: Any) -> Inputs | None:
    """The same inputs with as many places for pictures or sounds in their text as the model asks for."""
    found = TOO_FEW.search(said)
    if found is None or "input_ids" not in inputs:
        return None
    has, wants = int(found.group(1)), int(found.group(2))
    hidden = first(config, "hidden_size", default=1)
    words = [one for one in PLACE_HOLDERS if re.search(one.split("_")[0], said, re.IGNORECASE) or True]
    token = next((value for word in words if isinstance(value := first(config, word), int)), None)
    token = next(
        (
            value
            for word in words
            if word.split("_")[0] in said.lower() and isinstance(value := first(config, word), int)
        ),
        token,
    )
    if token is None or has == wants:
        return None
    before = inputs["input_ids"]
    kept = before[:, -SOURCE:]
    for many in (wants, wants // max(1, hidden)):
        if many % BATCH == 0 and many:
            places = torch.full((BATCH, many // BATCH), token)
            longer = torch.cat([kept[:, :2], places, kept[:, 2:]], 1)
            if longer.shape != before.shape:
                break
    else:
        return None
    more = {**inputs, "input_ids": longer}
    if "attention_mask" in inputs:
        more["attention_mask"] = torch.ones_like(longer)
    if "mm_token_type_ids" in inputs:
        more["mm_token_type_ids"] = (longer == token).long()
    return more


PLACE_HOLDERS = (
    "image_token_id",
    "image_token_index",
    "video_token_id",
    "audio_token_id",
    "audio_token_index",
    "speech_token_id",
    "media_token_id",
)


def altered(inputs: Inputs, entry: int = 1) -> Inputs:
    """The same inputs, but for one entry of the batch, which is another."""
    found: Inputs = {}
    for name, value in inputs.items():
        if (
            isinstance(value, Tensor)
            and "mask" not in name
            and "size" not in name
            and "grid" not in name
            and "type" not in name
            and value.shape[0] % BATCH == 0
            and value.ndim > 1
        ):
            value = value.clone()
            share = value.shape[0] // BATCH
            part = value[entry * share : (entry + 1) * share]
            if value.is_floating_point():
                part += torch.randn(part.shape, generator=torch.Generator().manual_seed(99))
            elif name != "bbox":
                other = torch.randint(*TEXT, part.shape, generator=torch.Generator().manual_seed(98))
                part.copy_(torch.where(part < TEXT[1], other, part))
        found[name] = value
    return found
