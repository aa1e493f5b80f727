"""`web/src/trace/schema.ts`, made from the manifest of a trace file, so that both languages know the same words.

python -m regard.views.explorer.schema web/src/trace/schema.ts
"""

import json
import sys
from pathlib import Path
from typing import Any

from regard.files import put
from regard.trace.file.manifest import VERSION, Manifest
from regard.views.explorer.typescript import interface

HEAD = """/**
 * The words of a trace file, version {version}: what its JSON manifest says. Arrays are named, and stand in the file.
 * Made from src/regard/trace/file/manifest.py: change that, then run
 * `python -m regard.views.explorer.schema web/src/trace/schema.ts`.
 */

export const VERSION = {version};

/** Of which kind one word is; `usual` is what it says where it is left out, `may` whether it may be null. */
export interface Word {{
  readonly is: "text" | "flag" | "number" | "whole" | "list" | "words";
  readonly of?: Word | string; // what a list holds; the name of the words
  readonly one?: readonly (string | number)[]; // nothing else is known
  readonly least?: number; // at least, of a number or of the length of a list
  readonly most?: number;
  readonly above?: number;
  readonly below?: number;
  readonly may?: true;
  readonly usual?: unknown;
}}
"""
KINDS = {"string": "text", "boolean": "flag", "number": "number", "integer": "whole"}
LIMITS = {
    "minimum": "least",
    "maximum": "most",
    "minItems": "least",
    "maxItems": "most",
    "exclusiveMinimum": "above",
    "exclusiveMaximum": "below",
}


def schema() -> str:
    """The text of `schema.ts`.

    >>> "export interface LayerWords {" in schema()
    True
    """
    whole = Manifest.model_json_schema()
    classes: dict[str, Any] = {**whole.pop("$defs"), "Manifest": whole}
    parts = [HEAD.format(version=VERSION)]
    for name, words in classes.items():
        parts.append(interface(name, words))
    lines = []
    for name, words in classes.items():
        lines.append(f"  {name}: {{")
        lines += [f"    {key}: {literal(word(one))}," for key, one in words["properties"].items()]
        lines.append("  },")
    table = "\n".join(lines)
    parts.append(f"export const WORDS: Readonly<Record<string, Readonly<Record<string, Word>>>> = {{\n{table}\n}};\n")
    return "\n".join(parts)


def word(given: dict[str, Any]) -> dict[str, Any]:
    """One word of the JSON schema in ours."""
    usual = {"usual": given["default"]} if "default" in given else {}
    if "anyOf" in given:
        (inner,) = (one for one in given["anyOf"] if one.get("type") != "null")
        return word(inner) | {"may": True} | usual
    if "$ref" in given:
        return {"is": "words", "of": given["$ref"].rpartition("/")[2]} | usual
    one = given.get("enum", [given["const"]] if "const" in given else None)
    limits = {ours: given[theirs] for theirs, ours in LIMITS.items() if theirs in given}
    if given["type"] == "array":
        return {"is": "list", "of": word(given["items"])} | limits | usual
    return {"is": KINDS[given["type"]]} | ({} if one is None else {"one": one}) | limits | usual


def literal(value: Any) -> str:
    """A value as TypeScript writes it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key}: {literal(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    power = value.bit_length() - 1 if isinstance(value, int) and value > 2**31 else 0
    if power and value == 2**power:
        return f"2 ** {power}"
    if isinstance(value, int) and -value > 2**31:
        return f"-({literal(-value)})"
    return json.dumps(value)


if __name__ == "__main__":
    put(Path(sys.argv[1]), schema().encode())
