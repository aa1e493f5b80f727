"""TypeScript from pydantic models, by way of their JSON schema."""

import json
from collections.abc import Collection
from typing import Any

TYPES = {"string": "string", "boolean": "boolean", "number": "number", "integer": "number", "null": "null"}


def type_of(node: dict[str, Any]) -> str:
    """The TypeScript type of one node of a JSON schema.

    >>> type_of({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]})
    'readonly number[] | null'
    >>> type_of({"type": "object", "additionalProperties": {"$ref": "#/$defs/Card"}})
    'Readonly<Record<string, Card>>'
    """
    if "$ref" in node:
        return str(node["$ref"].rpartition("/")[2])
    if "anyOf" in node:
        return " | ".join(dict.fromkeys(type_of(one) for one in node["anyOf"]))
    values = node.get("enum", [node["const"]] if "const" in node else None)
    if values is not None:
        return " | ".join(map(json.dumps, values))
    if node.get("type") == "array":
        return array_type(node)
    if node.get("type") == "object":
        inner = node.get("additionalProperties")
        return f"Readonly<Record<string, {type_of(inner) if isinstance(inner, dict) else 'unknown'}>>"
    return TYPES[node["type"]] if "type" in node else "unknown"


def array_type(node: dict[str, Any]) -> str:
    """The type of a list, or of a tuple where its length is known.

    >>> array_type({"items": {"type": "integer"}, "minItems": 2, "maxItems": 2})
    'readonly [number, number]'
    """
    length = node.get("minItems")
    if "prefixItems" in node:
        return f"readonly [{', '.join(map(type_of, node['prefixItems']))}]"
    inner = type_of(node["items"])
    if length is not None and length == node.get("maxItems"):
        return f"readonly [{', '.join([inner] * length)}]"
    return f"readonly ({inner})[]" if " | " in inner or inner.startswith("readonly") else f"readonly {inner}[]"


def interface(name: str, schema: dict[str, Any], optional: Collection[str] = ()) -> str:
    """One model as an interface; what a field's description says stands beside it."""
    lines = [f"/** {' '.join(schema['description'].split())} */", f"export interface {name} {{"]
    for key, node in schema["properties"].items():
        comment = f" // {node['description']}" if "description" in node else ""
        lines.append(f"  readonly {key}{'?' if key in optional else ''}: {type_of(node)};{comment}")
    return "\n".join([*lines, "}", ""])
