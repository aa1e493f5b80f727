"""The layout of `sentence-transformers`: which modules stand behind the encoder, in modules.json and beside it."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from regard.errors import ModelError
from regard.files import make_folder, put
from regard.models.bert_config import BertConfig
from regard.models.safe_folder import read_json
from regard.models.sentence_encoder import SentenceEncoderConfig

MODULES, POOLING, NORMALIZE = "modules.json", "1_Pooling", "2_Normalize"
MODES = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max"}  # of theirs → ours
PACKAGE = "sentence_transformers.models"


def read_sentence_config(folder: Path, encoder: Any) -> SentenceEncoderConfig | None:
    """The config of the sentence encoder in a folder, whose encoder this is; None where no modules.json is in it."""
    if not (folder / MODULES).exists():
        return None
    modules = read_modules(folder)
    kinds = [str(one.get("type")).rpartition(".")[2] for one in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise ModelError(
            f"{folder / MODULES} has {', '.join(kinds) or 'nothing'}, but a sentence encoder here is Transformer, "
            "Pooling and perhaps Normalize; open it with sentence-transformers, and watch that"
        )
    encoder_path, pooling_path = (str(one.get("path", "")) for one in modules[:2])
    if encoder_path or pooling_path in ("", "..") or Path(pooling_path).name != pooling_path:
        raise ModelError(
            f"{folder / MODULES} has its encoder in {encoder_path!r} and its pooling in {pooling_path!r}, wanted '' "
            "and a folder such as '1_Pooling'; save the model again with sentence-transformers"
        )
    if not isinstance(encoder, BertConfig) or encoder.head != "none":
        raise ModelError(
            f"{folder} is a sentence encoder over another model than a BERT without a head; open that alone"
        )
    pooling = read_json(folder / pooling_path / "config.json", "has no config.json of its pooling")
    return SentenceEncoderConfig(**asdict(encoder), pooling=read_mode(folder, pooling), normalize=len(kinds) > 2)


def read_modules(folder: Path) -> list[dict[str, Any]]:
    """The modules in their order."""
    try:
        modules = json.loads((folder / MODULES).read_bytes())
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder / MODULES} is no JSON ({error}); save the model again") from error
    if not isinstance(modules, list) or not all(isinstance(one, dict) for one in modules):
        raise ModelError(f"{folder / MODULES} holds no list of modules; save the model again")
    return modules


def read_mode(folder: Path, pooling: dict[str, Any]) -> str:
    """How tokens are pooled: the one mode that is on."""
    modes = [
        name.removeprefix("pooling_mode_") for name, on in pooling.items() if name.startswith("pooling_mode_") and on
    ]
    if len(modes) != 1 or modes[0] not in MODES:
        raise ModelError(
            f"{folder} pools by {' and '.join(modes) or 'nothing'}, but by one of {', '.join(MODES)} here; open it "
            "with sentence-transformers, and watch that"
        )
    return MODES[modes[0]]


def write_sentence_config(folder: Path, config: SentenceEncoderConfig) -> None:
    """The files by which `sentence-transformers` knows what stands behind the encoder in this folder."""
    kinds = {"": "Transformer", POOLING: "Pooling", **({NORMALIZE: "Normalize"} if config.normalize else {})}
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"{PACKAGE}.{kind}"}
        for number, (path, kind) in enumerate(kinds.items())
    ]
    modes = {f"pooling_mode_{theirs}": ours == config.pooling for theirs, ours in MODES.items()}
    make_folder(folder / POOLING)
    put(folder / POOLING / "config.json", dump({"word_embedding_dimension": config.width, **modes}))
    put(folder / MODULES, dump(modules))


def dump(content: Any) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()
