"""Chat templates: how a model wants the turns of a conversation written as one text, in Jinja as in `transformers`."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from regard.errors import ModelError
from regard.models.template_sandbox import StepCounter, TemplateRefusal, compile_template
from regard.tokens.visible import cut


class ChatTemplate:
    """A conversation as the text that a model was trained on.

    `source` is the template in Jinja; `tokens` are the special tokens that it may name, such as `bos_token`.

    >>> template = ChatTemplate("{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}"
    ...                         "{% if add_generation_prompt %}<assistant>{% endif %}", {"eos_token": "</s>"})
    >>> template.render([{"role": "user", "content": "hello"}])
    '<user>hello</s><assistant>'
    """

    def __init__(self, source: str, tokens: Mapping[str, str] | None = None) -> None:
        self.source, self.tokens = source, dict(tokens or {})

    def render(self, messages: Any, *, add_generation_prompt: bool = True, **variables: Any) -> str:
        """The text of these turns, each with a `role` and a `content`; at its end, what makes the model answer.

        It holds all special tokens that the model wants: encode it without adding more. `variables` are handed on.
        """
        check_messages(messages)
        template, steps = self.compiled, StepCounter()
        given = {**self.tokens, **variables, "messages": [dict(message) for message in messages]}
        try:
            return steps.render(template, {**given, "add_generation_prompt": add_generation_prompt})
        except TemplateRefusal as error:
            raise ModelError(f"the chat template refuses this conversation: {one_line(error)}") from error
        except Exception as error:  # whatever foreign code runs into
            raise ModelError(
                f"the chat template fails on this conversation ({type(error).__name__}: {one_line(error)}); "
                "give another conversation, or another template"
            ) from error

    @cached_property
    def compiled(self) -> Any:
        """The template of Jinja."""
        try:
            return compile_template(self.source)
        except ModelError:
            raise
        except Exception as error:  # also where it is nested too deeply
            raise ModelError(f"the chat template is no Jinja ({one_line(error)}); give another one") from error

    def __repr__(self) -> str:
        return f"ChatTemplate({cut(self.source, 40)!r})"


def check_messages(messages: Any) -> None:
    """Refuse what is no conversation."""
    if isinstance(messages, str | Mapping) or not messages:
        raise ModelError("a conversation is a list of turns, each {'role': …, 'content': …}; give one turn or more")
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str) or "content" not in message:
            raise ModelError(
                f"turn {number} of the conversation is {cut(repr(message), 80)}; give a dict with role and content"
            )


def one_line(error: BaseException) -> str:
    """What an error says, without line ends and not too long."""
    return cut(" ".join(str(error).split()), 200)
