"""The registry of model kinds: one entry says all that storing, listing, running and showing need to know of a kind.

Adding a kind is a file with its config and its class, and one entry here (or a call of `register`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from torch import nn

from regard.errors import ModelError
from regard.extras import load_named
from regard.models.config import ModelConfig

READS = ("text", "pair", "picture", "numbers")
TASKS = ("generate", "translate", "summarise", "read", "see")


@dataclass(frozen=True)
class Kind:
    """One kind of model. Classes stand as "module:name" and are imported when they are used.

    `opener` is called with the name of a model and the folder it lies in, and gives what the server runs: a
    `regard.app.runners.runner.Runner`. A kind that only reads a text can take `regard.app.runners.readers:open_reader`.

    >>> gpt = kind_named("gpt")
    >>> gpt.reads, gpt.writes, gpt.task
    ('text', 'text', 'generate')
    >>> gpt.config_class.__name__, gpt.model_class.__name__
    ('GPTConfig', 'GPT')
    """

    name: str  # as manifests spell it
    config: str  # the frozen dataclass of its hyper-parameters, which has build()
    model: str  # the module that build() makes
    reads: str  # "text", "pair" (a source, and a target that it continues), "picture" or "numbers"
    writes: str | None  # "text", or None where it only reads
    tasks: tuple[
        str, ...
    ]  # what can be done with it: "generate", "translate", "summarise", "read", "see"; the first is usual
    opener: str  # what opens it for the server
    cross: str = ""  # the layers that look from one sequence at another, by their names: "decoder.*.cross_attention"
    unbounded: tuple[str, ...] = ("context", "pad")  # whole numbers of its config that count nothing in its weights

    def __post_init__(self) -> None:
        if self.reads not in READS:
            raise ModelError(f"kind {self.name!r} reads {self.reads!r}; choose one of {', '.join(map(repr, READS))}")
        unknown = next((task for task in self.tasks if task not in TASKS), None if self.tasks else "nothing")
        if unknown is not None:
            raise ModelError(f"kind {self.name!r} serves {unknown!r}; choose from {', '.join(map(repr, TASKS))}")

    @property
    def task(self) -> str:
        """What it is usually used for."""
        return self.tasks[0]

    @property
    def config_class(self) -> type[ModelConfig]:
        made: type[ModelConfig] = resolve(self.config)
        return made

    @property
    def model_class(self) -> type[nn.Module]:
        made: type[nn.Module] = resolve(self.model)
        return made

    @property
    def open(self) -> Callable[..., Any]:
        """What takes a name and a folder, and gives what the server runs."""
        opener: Callable[..., Any] = resolve(self.opener)
        return opener

    def looks_across(self, model: nn.Module) -> bool:
        """Whether this model has a layer that looks from one sequence at another.

        >>> from regard.models import embedded
        >>> kind_named("translator").looks_across(embedded.load("en-zh-grammar"))
        True
        """
        return self.cross != "" and any(fnmatchcase(name, self.cross) for name, _ in model.named_modules())


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            name="gpt",
            config="regard.models.gpt:GPTConfig",
            model="regard.models.gpt:GPT",
            reads="text",
            writes="text",
            tasks=("generate", "read"),
            opener="regard.app.runners.writers:open_writer",
        ),
        Kind(
            name="gpt2",
            config="regard.models.gpt2:Gpt2Config",
            model="regard.models.gpt2:Gpt2",
            reads="text",
            writes="text",
            tasks=("generate", "read"),
            opener="regard.app.runners.writers:open_writer",
        ),
        Kind(
            name="llama",
            config="regard.models.llama:LlamaConfig",
            model="regard.models.llama:Llama",
            reads="text",
            writes="text",
            tasks=("generate", "read"),
            opener="regard.app.runners.writers:open_writer",
            unbounded=("context", "window", "window_from", "rope_original_context"),
        ),
        Kind(
            name="bert",
            config="regard.models.bert_config:BertConfig",
            model="regard.models.bert:Bert",
            reads="text",
            writes=None,
            tasks=("read",),
            opener="regard.app.runners.readers:open_reader",
            unbounded=("context", "pad", "labels"),
        ),
        Kind(
            name="sentence_encoder",
            config="regard.models.sentence_encoder:SentenceEncoderConfig",
            model="regard.models.sentence_encoder:SentenceEncoder",
            reads="text",
            writes=None,
            tasks=("read",),
            opener="regard.app.runners.readers:open_reader",
            unbounded=("context", "pad", "labels"),
        ),
        Kind(
            name="classifier",
            config="regard.models.text_classifier:TextClassifierConfig",
            model="regard.models.text_classifier:TextClassifier",
            reads="text",
            writes=None,
            tasks=("read",),
            opener="regard.app.runners.readers:open_reader",
        ),
        Kind(
            name="recurrent_classifier",
            config="regard.models.recurrent_classifier:RecurrentClassifierConfig",
            model="regard.models.recurrent_classifier:RecurrentClassifier",
            reads="text",
            writes=None,
            tasks=("read",),
            opener="regard.app.runners.readers:open_reader",
        ),
        Kind(
            name="vit",
            config="regard.models.vit_config:VitConfig",
            model="regard.models.vit:Vit",
            reads="picture",
            writes=None,
            tasks=("see",),
            opener="regard.app.runners.pictures:open_picture_reader",
            unbounded=("labels", "image_height", "image_width"),
        ),
        Kind(
            name="swin",
            config="regard.models.swin_config:SwinConfig",
            model="regard.models.swin:Swin",
            reads="picture",
            writes=None,
            tasks=("see",),
            opener="regard.app.runners.pictures:open_picture_reader",
            unbounded=("labels", "image_height", "image_width"),
        ),
        Kind(
            name="glimpse",
            config="regard.models.glimpse_config:GlimpseConfig",
            model="regard.models.glimpse:Glimpse",
            reads="picture",
            writes=None,
            tasks=("see",),
            opener="regard.app.runners.pictures:open_picture_reader",
            unbounded=("labels", "image_height", "image_width"),
        ),
        Kind(
            name="captioner",
            config="regard.models.captioner_config:CaptionerConfig",
            model="regard.models.captioner:Captioner",
            reads="picture",
            writes="text",
            tasks=("see",),
            opener="regard.app.runners.captions:open_captioner_runner",
            cross="decoder.attention",  # not there in the twin without attention
            unbounded=("pad", "image_height", "image_width"),
        ),
        Kind(
            name="t5",
            config="regard.models.t5:T5Config",
            model="regard.models.t5:T5",
            reads="pair",
            writes="text",
            tasks=("translate",),
            opener="regard.app.runners.translators:open_text_to_text",
            cross="decoder.blocks.*.cross_attention",
            unbounded=("pad", "begin", "end", "furthest"),
        ),
        Kind(
            name="translator",
            config="regard.models.translator:TranslatorConfig",
            model="regard.models.translator:Translator",
            reads="pair",
            writes="text",
            tasks=("translate",),
            opener="regard.app.runners.translators:open_pair",
            cross="decoder.blocks.*.cross_attention",
        ),
        Kind(
            name="pointer_generator",
            config="regard.models.pointer_generator:PointerGeneratorConfig",
            model="regard.models.pointer_generator:PointerGenerator",
            reads="pair",
            writes="text",
            tasks=("summarise",),
            opener="regard.app.runners.summarisers:open_summary_runner",
            cross="decoder.blocks.*.cross_attention",
        ),
        Kind(
            name="seq2seq",
            config="regard.models.seq2seq:Seq2SeqConfig",
            model="regard.models.seq2seq:Seq2Seq",
            reads="pair",
            writes="text",
            tasks=("translate",),
            opener="regard.app.runners.translators:open_pair",
            cross="decoder.attention",  # not there in the baseline without attention
        ),
    )
}


def register(kind: Kind) -> None:
    """Add a kind of model; its name must be new."""
    if kind.name in KINDS:
        raise ModelError(f"there is a kind {kind.name!r} already; give the new one another name")
    KINDS[kind.name] = kind


@contextmanager
def temporary_kind(kind: Kind) -> Iterator[None]:
    """A kind that is registered as long as the block runs.

    >>> import dataclasses
    >>> with temporary_kind(dataclasses.replace(kind_named("gpt"), name="other")):
    ...     list(KINDS)
    ['gpt', 'gpt2', 'llama', 'bert', ..., 'other']
    """
    register(kind)
    try:
        yield
    finally:
        del KINDS[kind.name]


def kind_named(name: object) -> Kind:
    """The kind of this name, as a manifest spells it."""
    if not isinstance(name, str) or name not in KINDS:
        raise ModelError(f"there is no kind {name!r} of model; there are: {', '.join(KINDS)}")
    return KINDS[name]


def kind_of(model: nn.Module) -> Kind | None:
    """The kind of a model, or of a class that it extends; None of a model that is not ours."""
    return entry_of(type(model), [(kind.model, kind) for kind in KINDS.values()])


def kind_of_config(config: ModelConfig) -> Kind:
    """The kind that a config builds."""
    kind = entry_of(type(config), [(kind.config, kind) for kind in KINDS.values()])
    if kind is None:
        raise ModelError(f"{type(config).__name__} is the config of no kind; add one with regard.models.kinds.register")
    return kind


def entry_of(cls: type, entries: Sequence[tuple[str, Kind]]) -> Kind | None:
    """The entry of a class or of its nearest ancestor, found by name: nothing is imported."""
    known = dict(reversed(entries))  # the first of two that share a class
    return next((known[path] for one in cls.__mro__ if (path := f"{one.__module__}:{one.__qualname__}") in known), None)


def resolve(path: str) -> Any:
    """What "module:name" stands for, imported now.

    >>> resolve("regard.models.gpt:GPTConfig").__name__
    'GPTConfig'
    """
    try:
        return load_named(path)
    except (ImportError, AttributeError, ValueError) as error:
        raise ModelError(f"{path!r} cannot be imported ({error}); write it as 'module:name'") from error
