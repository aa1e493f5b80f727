"""`web/src/trace/messages.ts`, made from the messages of the server, so that both languages know the same ones.

python -m regard.app.protocol.typescript web/src/trace/messages.ts
"""

import sys
from inspect import isclass
from pathlib import Path
from typing import get_args

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from regard.app.protocol import messages
from regard.app.protocol.messages import PageMessage, RunEvent, ServerMessage
from regard.files import put
from regard.views.explorer.typescript import interface

HEAD = """/**
 * The messages between a page and the server.
 * Made from src/regard/app/protocol/messages.py: change that, then run
 * `python -m regard.app.protocol.typescript web/src/trace/messages.ts`.
 */
"""


def message_types() -> list[type[BaseModel]]:
    """Every kind of message, in the order in which they are defined."""
    defined = [value for value in vars(messages).values() if isclass(value) and issubclass(value, BaseModel)]
    return [kind for kind in defined if PageMessage in kind.__bases__ or ServerMessage in kind.__bases__]


def write_types() -> str:
    """The text of `messages.ts`. A page sends every field; what the server sends may lack those with a default.

    >>> "export interface ModelInfo {" in write_types()
    True
    """
    _, schema = models_json_schema([(kind, "serialization") for kind in message_types()])
    parts = [HEAD]
    for kind in message_types():
        node = schema["$defs"][kind.__name__]
        fields = kind.model_fields.items() if issubclass(kind, ServerMessage) else ()
        optional = {one.serialization_alias or name for name, one in fields if not one.is_required()}
        parts.append(interface(kind.__name__, node, optional))
    events = " | ".join(kind.__name__ for kind in get_args(RunEvent))
    parts.append(f"/** What arrives while a model runs. */\nexport type RunEvent = {events};\n")
    return "\n".join(parts)


if __name__ == "__main__":
    put(Path(sys.argv[1]), write_types().encode())
