"""messages.ts says what the messages of the server say."""

from pathlib import Path

import pytest

from regard.app.protocol.messages import PageMessage, RunEvent, ServerMessage
from regard.app.protocol.typescript import message_types, write_types

TYPES = Path(__file__).parents[2] / "web" / "src" / "trace" / "messages.ts"


def test_the_committed_types_are_what_the_messages_make():
    assert TYPES.read_text(encoding="utf-8") == write_types(), (
        "run python -m regard.app.protocol.typescript web/src/trace/messages.ts"
    )


def fields_of(name):
    part = write_types().split(f"export interface {name} {{\n")[1].split("}\n")[0]
    return [line.split()[1].rstrip(":") for line in part.strip().splitlines()]


def test_every_message_and_field_is_there_and_what_may_be_missing_is_marked():
    kinds = message_types()
    assert len(kinds) >= 18
    assert {type_ for type_ in kinds if issubclass(type_, PageMessage)} | set(RunEvent.__args__) <= set(kinds)
    for kind in kinds:
        names = {one.serialization_alias or name: one.is_required() for name, one in kind.model_fields.items()}
        is_sent = issubclass(kind, ServerMessage)
        marked = [f"{name}?" if is_sent and not required else name for name, required in names.items()]
        assert fields_of(kind.__name__) == marked, kind


@pytest.mark.parametrize("kind", [kind for kind in message_types() if issubclass(kind, PageMessage)])
def test_what_is_not_known_is_refused(kind):
    assert kind.model_config["extra"] == "forbid"
    assert kind.model_config["strict"]
