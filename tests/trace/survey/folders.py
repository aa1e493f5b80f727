"""The models of `transformers`: one class for each of its folders."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import nn

from tests.trace.survey.inputs import candidates, picture_size
from tests.trace.survey.library import Attempt, Library
from tests.trace.survey.overrides import FEEDS, SETTINGS
from tests.trace.survey.sizes import small_config

ENDS = (
    "Model",
    "ForConditionalGeneration",
    "ForCausalLM",
    "ForObjectDetection",
    "ForPreTraining",
    "ForSemanticSegmentation",
    "ForDepthEstimation",
    "ForImageClassification",
    "ForPrediction",
    "ForMaskedLM",
    "ForKeypointMatching",
    "Backbone",
)
LARGEST = 60_000_000
WIDEST = 512  # pixels
MOST = 6  # classes of a folder that are tried


def folders() -> list[str]:
    """Every folder of models that torch runs."""
    import transformers

    root = Path(transformers.__file__).parent / "models"
    return sorted(
        one.name for one in root.iterdir() if one.is_dir() and list(one.glob("modeling_*.py")) and one.name != "auto"
    )


def mentions_attention(folder: str) -> bool:
    """Whether its source knows the word."""
    import transformers

    root = Path(transformers.__file__).parent / "models" / folder
    return any(
        re.search("attention|softmax", one.read_text(encoding="utf-8"), re.IGNORECASE)
        for one in root.glob("modeling_*.py")
    )


def classes_of(folder: str) -> list[type[nn.Module]]:
    """The classes of a folder that are whole models, the barest and widest first."""
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    root = Path(transformers.__file__).parent / "models" / folder
    found: list[type[nn.Module]] = []
    for file in sorted(root.glob("modeling_*.py")):
        module = importlib.import_module(f"transformers.models.{folder}.{file.stem}")
        for name in getattr(module, "__all__", []):
            one = getattr(module, name, None)
            if (
                isinstance(one, type)
                and issubclass(one, transformers.PreTrainedModel)
                and getattr(one, "config_class", None) is not None
                and not name.endswith("PreTrainedModel")
            ):
                found.append(one)
    preferred = MODEL_MAPPING_NAMES.get(folder, ())
    preferred = (preferred,) if isinstance(preferred, str) else preferred

    def rank(one: type) -> tuple[bool, bool, int, int]:
        end = next((i for i, end in enumerate(ENDS) if one.__name__.endswith(end)), len(ENDS))
        part = any(word in one.__name__ for word in ("Text", "Vision", "Audio", "Encoder", "Decoder", "Speech"))
        return (one.__name__ not in preferred, part, end, len(one.__name__))

    return sorted(found, key=rank)


def targets(folder: str) -> list[str]:
    """One class for each configuration class of a folder, the widest first."""
    chosen: dict[type, str] = {}
    for one in classes_of(folder):
        chosen.setdefault(one.config_class, one.__name__)  # type: ignore[arg-type,attr-defined]
    return list(chosen.values())


def build(one: type[nn.Module], level: int, settings: dict[str, Any]) -> nn.Module:
    import torch

    config = small_config(one.config_class, level, **settings)
    with torch.device("meta"):
        size = sum(p.numel() for p in one(config).parameters())
    if size > LARGEST:
        raise ValueError(f"still {size:,} parameters")
    torch.manual_seed(0)
    return one(config).float().eval()


def names() -> list[str]:
    """Each folder whose source knows attention."""
    return [folder for folder in folders() if mentions_attention(folder)]


def attempts(folder: str) -> Iterator[Attempt | str]:
    """The widest class first, small in each respect, then with its own widths; then those of its other settings."""
    import transformers

    try:
        classes = targets(folder)[:MOST]
    except ImportError:
        yield "its module needs a library that is not installed"
        return
    for wanted in classes:
        one = next(one for one in classes_of(folder) if one.__name__ == wanted)
        settings = SETTINGS.get(one.config_class.__name__, {})  # type: ignore[attr-defined]
        for level in (0, 1):
            try:
                model = build(one, level, settings)
            except Exception as error:
                yield f"{type(error).__name__}: {str(error)[:200]}"
                continue
            assert isinstance(model, transformers.PreTrainedModel)
            own, config = FEEDS.get(wanted), model.config
            if level and max(picture_size(config)) > WIDEST:
                yield f"its pictures have {max(picture_size(config))} pixels a side"
                continue
            yield Attempt(model, candidates(model, config) if own is None else [own(config)], config, {"level": level})


def load() -> object:
    import transformers

    return transformers.PreTrainedModel, transformers.BertModel, transformers.GenerationMixin


TRANSFORMERS = Library("transformers", "transformers", load, names, attempts)
