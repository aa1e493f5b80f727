"""What a run is told: typed, described, and refused by name where a key or a value is wrong."""

import difflib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from regard.errors import ConfigError


class Settings(BaseModel):
    """What every run has. A task adds its own: what to read, and which model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: int = Field(0, ge=0, description="random seed")
    steps: int = Field(2000, ge=1, description="training steps")
    gradient_accumulation: int = Field(1, ge=1, description="micro-batches per step, to save memory")
    lr: float = Field(1e-3, gt=0, description="peak learning rate")
    warmup_steps: int = Field(400, ge=0, description="steps of linear learning-rate warmup")
    lr_schedule: Literal["linear", "cosine", "inverse_sqrt", "constant"] = Field(
        "linear", description="learning-rate schedule after warmup"
    )
    min_lr: float = Field(0.0, ge=0, description="minimum learning rate")
    optimizer: Literal["adamw", "sgd"] = Field("adamw", description="optimizer; sgd learns small data less by heart")
    weight_decay: float = Field(0.01, ge=0, description="weight decay")
    betas: tuple[float, float] = Field((0.9, 0.98), description="AdamW betas")
    momentum: float = Field(0.9, ge=0, lt=1, description="SGD momentum")
    grad_clip: float = Field(1.0, ge=0, description="maximum gradient norm; 0 disables clipping")
    eval_every: int = Field(500, ge=1, description="steps between validations")
    patience: int = Field(0, ge=0, description="stop after this many validations without improvement; 0: never")
    save_every: int = Field(500, ge=1, description="steps between checkpoints")
    keep_checkpoints: int = Field(2, ge=1, description="checkpoints to keep")
    average_checkpoints: int = Field(
        0,
        ge=0,
        description="last checkpoints to average, if that scores better than the best one; 0: none",
    )
    log_every: int = Field(50, ge=1, description="steps between log lines")
    num_workers: int = Field(0, ge=0, description="data loader processes; 0 loads in the main process")
    compile: bool = Field(False, description="compile the model with torch.compile")
    tensorboard: bool = Field(False, description="also log to TensorBoard")
    parallel: Literal["ddp", "fsdp"] = Field("ddp", description="data parallelism under torchrun")
    device: str = Field("auto", description="device: cpu, cuda, mps; auto picks an accelerator if there is one")

    @field_validator("betas", mode="before")
    @classmethod
    def split_numbers(cls, given: Any) -> Any:
        """`--betas 0.9,0.98` is two numbers."""
        return given.split(",") if isinstance(given, str) else given


M = TypeVar("M", bound=BaseModel)


def with_defaults(**values: Any) -> Callable[[type[M]], type[M]]:
    """Decorate settings that inherit others: the same settings with these defaults.

    >>> @with_defaults(steps=7)
    ... class Few(Settings):
    ...     pass
    >>> Few().steps, Settings().steps, Few.model_fields["steps"].description
    (7, 2000, 'training steps')
    """

    def change(kind: type[M]) -> type[M]:
        for name, value in values.items():
            field = copy(kind.model_fields[name])
            field.default = value
            kind.model_fields[name] = field
        kind.model_rebuild(force=True)
        return kind

    return change


def read_toml(path: Path) -> dict[str, Any]:
    """The settings in a TOML file; sections only group them."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}); name a TOML file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is no TOML ({error}); write lines such as `steps = 1000`") from error
    flat: dict[str, Any] = {}
    for name, value in found.items():
        flat.update(value if isinstance(value, dict) else {name: value})
    return flat


def read_flags(words: Sequence[str]) -> dict[str, Any]:
    """`--steps 1000 --lowercase --no-tied --lr=0.001` as names and texts; a flag without a value is True.

    >>> read_flags(["--steps", "1000", "--lowercase", "--eval-every=7"])
    {'steps': '1000', 'lowercase': True, 'eval_every': '7'}
    """
    found: dict[str, Any] = {}
    waiting: str | None = None
    for word in words:
        if word.startswith("--") and len(word) > 2:
            name, given, value = word[2:].partition("=")
            name = name.replace("-", "_")
            waiting = None if given else name
            found[name] = value if given else True
        elif waiting is not None:
            found[waiting], waiting = word, None
        else:
            raise ConfigError(f"{word!r} belongs to no setting; write --name value")
    for name in [name for name, value in found.items() if value is True and name.startswith("no_")]:
        del found[name]
        found[name[3:]] = False
    return found


def settings_from(kind: type[M], given: Mapping[str, Any]) -> M:
    """Settings of this kind, or a `ConfigError` that names the nearest key, or what the value may be.

    >>> settings_from(Settings, {"setps": 3})
    Traceback (most recent call last):
    regard.errors.ConfigError: there is no setting 'setps'; did you mean 'steps'?
    """
    known = kind.model_fields
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.5)
            advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(known))}"
            raise ConfigError(f"there is no setting {name!r}; {advice}")
    try:
        return kind.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "a setting"
        about = known[name].description if name in known else ""
        said = str(first["msg"]).removeprefix("Value error, ")
        raise ConfigError(
            f"{name} is {first['input']!r}, but {said[:1].lower()}{said[1:]}" + (f" ({name}: {about})" if about else "")
        ) from error


class SettingRow(NamedTuple):
    """One setting as a user reads of it."""

    flag: str  # as it is typed
    about: str  # what it is, and what it may be
    default: str


def describe_settings(kind: type[BaseModel]) -> list[SettingRow]:
    """Every setting with its choices and its default.

    >>> rows = {row.flag: row for row in describe_settings(Settings)}
    >>> rows["--steps"]
    SettingRow(flag='--steps', about='training steps', default='2000')
    >>> rows["--lr-schedule"].about
    'learning-rate schedule after warmup: linear, cosine, inverse_sqrt or constant'
    >>> rows["--compile / --no-compile"].default
    'no'
    """
    rows = []
    for name, field in kind.model_fields.items():
        flag, about = f"--{name.replace('_', '-')}", field.description or ""
        if field.annotation is bool:
            flag = f"{flag} / --no-{flag[2:]}"
        choices = (
            [format_value(one) for one in get_args(field.annotation)] if get_origin(field.annotation) is Literal else []
        )
        if choices:
            about = f"{about}: {', '.join(choices[:-1])} or {choices[-1]}"
        rows.append(SettingRow(flag, about, "needed" if field.is_required() else format_value(field.default)))
    return rows


def format_value(value: Any) -> str:
    """A value as it is written in a command.

    >>> format_value(True), format_value(0.001), format_value("scaled dot"), format_value("")
    ('yes', '0.001', "'scaled dot'", 'none')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return (f"'{value}'" if " " in value else value) or "none"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
