"""Templates of Jinja as foreign code: in its sandbox, and within limits of steps and of size."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import wraps
from typing import Any

from regard.errors import ModelError
from regard.extras import GGUF, importing

MISSING = "to render a chat template, install regard[gguf]: pip install 'regard[gguf]'"
MAX_STEPS = 200_000  # of all loops of one rendering
MAX_TEXT = 4_000_000  # characters that come out, or of a text that is made on the way
LARGE = re.compile(r"\d{6,}")  # a width that a format wants
FORMATS = ("format", "format_map")


class TemplateRefusal(Exception):
    """What a template itself says against its input (`raise_exception`), or a limit that it broke."""


class StepCounter:
    """One rendering: counts what it does, and stops it where it does too much."""

    def __init__(self) -> None:
        self.steps = 0

    def render(self, template: Any, variables: Mapping[str, Any]) -> str:
        """The text of a template that `compile_template` made."""
        chunks: list[str] = []
        size = 0
        for chunk in template.generate(**{**variables, "count_steps": self.count, "join_text": join_text}):
            chunks.append(chunk)
            size += len(chunk)
            must_be_short(size)
        return "".join(chunks)

    def count(self, items: Iterable[Any]) -> Iterator[Any]:
        """The same items, counted."""
        for item in items:
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise TemplateRefusal(f"it loops more than {MAX_STEPS} times")
            yield item


def compile_template(source: str) -> Any:
    """A template with what `transformers` gives to its templates, every loop counted and every `~` measured."""
    with importing(*GGUF, missing=ModelError(MISSING)):
        from jinja2 import nodes
        from jinja2.visitor import NodeTransformer

    def call(name: str, arguments: list[Any], line: int) -> Any:
        return nodes.Call(nodes.Name(name, "load"), arguments, [], None, None, lineno=line)

    class Guard(NodeTransformer):
        def visit_For(self, node: Any) -> Any:  # noqa: N802
            self.generic_visit(node)
            node.iter = call("count_steps", [node.iter], node.lineno)
            return node

        def visit_Concat(self, node: Any) -> Any:  # noqa: N802
            self.generic_visit(node)
            return call("join_text", node.nodes, node.lineno)

    environment = make_environment()
    return environment.from_string(Guard().visit(environment.parse(source)))


def make_environment() -> Any:
    """Jinja's sandbox, with a little more care."""
    from jinja2 import nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """The block that marks what the model wrote: its content stands there as it is."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)

    class Sandbox(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset({"+", "*", "**", "%"})

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            check_operands(operator, left, right)
            return super().call_binop(context, operator, left, right)

        def call(self, context: Any, function: Any, /, *given: Any, **named: Any) -> Any:
            method = getattr(function, "__wrapped__", function)  # the sandbox wraps the `format` of a text
            text = getattr(method, "__self__", None)
            if isinstance(text, str):
                check_method(method.__name__, text, [*given, *named.values()])
            return super().call(context, function, *given, **named)

    environment = Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    for name in ("center", "format", "indent", "replace", "wordwrap"):
        environment.filters[name] = guard_filter(name, environment.filters[name])
    environment.filters["tojson"] = to_json
    del environment.globals["lipsum"]
    environment.globals |= {"raise_exception": refuse, "strftime_now": format_now}
    return environment


def guard_filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter whose arguments are looked at first."""

    @wraps(function)  # Jinja marks what a filter wants to be handed, on the function itself
    def check_and_call(*given: Any, **named: Any) -> Any:
        texts = [one for one in given if isinstance(one, str)]
        check_method(name, texts[0] if texts else "", [*given[1:], *named.values()])
        return function(*given, **named)

    return check_and_call


def check_method(name: str, text: str, given: list[Any]) -> None:
    """Refuse a method of a text whose result would be too large to hold."""
    for one in given:
        if isinstance(one, int):
            must_be_short(one)
    if name in FORMATS:
        must_be_narrow(text)
    elif name == "replace":
        must_be_short((len(text) + 1) * max([1, *(len(one) // 1000 for one in given if isinstance(one, str))]))
    elif name == "join":
        must_be_short(len(text) * 1000)


def check_operands(operator: str, left: Any, right: Any) -> None:
    """Refuse an operation whose result would be too large to hold."""
    if operator == "+" and isinstance(left, str) and isinstance(right, str):
        must_be_short(len(left) + len(right))
    elif operator == "*":
        sizes = [len(one) if isinstance(one, str | list | tuple) else one for one in (left, right)]
        if not all(isinstance(one, int | float) for one in (left, right)):
            must_be_short(abs(sizes[0] * sizes[1]))
    elif operator == "**":
        must_be_short(abs(left) + abs(right) * 1000)
    elif operator == "%" and isinstance(left, str):
        must_be_narrow(left)
        check_method("%", left, list(right) if isinstance(right, tuple) else [right])


def must_be_narrow(form: str) -> None:
    if LARGE.search(form):
        raise TemplateRefusal("it formats to a width of more than 99999")


def must_be_short(count: int | float) -> None:
    if count > MAX_TEXT:
        raise TemplateRefusal(f"it makes a text of more than {MAX_TEXT} characters")


def join_text(*parts: Any) -> str:
    """What `~` gives."""
    texts = [str(part) for part in parts]
    must_be_short(sum(map(len, texts)))
    return "".join(texts)


def refuse(message: object) -> None:
    """What a template calls `raise_exception`."""
    raise TemplateRefusal(str(message))


def format_now(form: str) -> str:
    """The date and the time."""
    return datetime.now().strftime(form)


def to_json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """JSON with every character as it is."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
