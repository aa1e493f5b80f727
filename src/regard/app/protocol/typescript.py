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
from regard.app.protocol.messages import Received, RunEvent, Sent
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
    return [
        value
        for value in vars(messages).values()
        if isclass(value) and issubclass(value, Received | Sent) and value not in (Received, Sent)
    ]


def write_types() -> str:
    """The text of `messages.ts`. A page sends every field; what the server sends may lack those with a default.

    >>> "export interface ModelInfo {" in write_types()
    True
    """
    _, schema = models_json_schema([(kind, "validation") for kind in message_types()])
    parts = [HEAD]
    for kind in message_types():
        node = schema["$defs"][kind.__name__]
        given = set(node["properties"]) if issubclass(kind, Received) else set(node.get("required", ()))
        parts.append(interface(kind.__name__, node, optional=set(node["properties"]) - given))
    events = " | ".join(kind.__name__ for kind in get_args(RunEvent))
    parts.append(f"/** What arrives while a model runs. */\nexport type RunEvent = {events};\n")
    return "\n".join(parts)


if __name__ == "__main__":
    put(Path(sys.argv[1]), write_types().encode())
