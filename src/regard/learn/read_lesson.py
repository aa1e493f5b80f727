"""Markdown → the parts of a lesson. The form is strict, so that a mistake is found when a lesson is read, by its line.

# Title
one paragraph that says what it is about
## Section          paragraphs, lists, tables, and fences: python, formula, figure, map
## Questions        the last section; each ### is a question, and what follows is its answer
"""

import tomllib
from collections.abc import Callable, Iterator
from typing import Any, cast

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from regard.errors import DataError
from regard.learn.parts import (
    BulletPoints,
    CodeCell,
    FigureCall,
    Formula,
    Lesson,
    LessonPart,
    LessonSection,
    ModelMap,
    Paragraph,
    Slider,
    TextTable,
)

QUESTIONS = {"en": "Questions", "zh": "问题"}


def read_lesson(text: str, *, number: int, name: str, language: str) -> Lesson:
    """The lesson that this Markdown holds.

    >>> text = "# Why\\n\\nA summary.\\n\\n## One\\n\\nText.\\n\\n## Questions\\n\\n### Is it so?\\n\\nYes.\\n"
    >>> lesson = read_lesson(text, number=1, name="why", language="en")
    >>> lesson.title, [section.title for section in lesson.sections], lesson.questions[0].title
    ('Why', ['One'], 'Is it so?')
    """
    nodes = SyntaxTreeNode(MarkdownIt("commonmark").enable("table").parse(text)).children
    if len(nodes) < 2 or heading_level(nodes[0]) != 1 or nodes[1].type != "paragraph":
        raise fault(nodes[0] if nodes else None, "a lesson begins with a # title and one paragraph that sums it up")
    sections = list(split_sections(nodes[2:], 2))
    if not sections or sections[-1][0] != QUESTIONS[language]:
        raise fault(nodes[-1], f"a lesson ends with the section ## {QUESTIONS[language]}")
    return Lesson(
        number,
        name,
        language,
        inline_text(nodes[0]),
        inline_text(nodes[1]),
        tuple(LessonSection(title, tuple(map(read_part, rest))) for title, rest in sections[:-1]),
        tuple(LessonSection(title, tuple(map(read_part, rest))) for title, rest in split_sections(sections[-1][1], 3)),
    )


def split_sections(nodes: list[SyntaxTreeNode], level: int) -> Iterator[tuple[str, list[SyntaxTreeNode]]]:
    """Each heading of this level with what follows it."""
    title, rest = "", list[SyntaxTreeNode]()
    for node in nodes:
        if heading_level(node) == level:
            if title:
                yield title, rest
            title, rest = inline_text(node), []
        elif title:
            rest.append(node)
        else:
            raise fault(node, f"a heading of level {level} is missing before it")
    if title:
        yield title, rest


def heading_level(node: SyntaxTreeNode) -> int:
    return int(node.tag[1:]) if node.type == "heading" else 0


def inline_text(node: SyntaxTreeNode) -> str:
    """The source of a paragraph, heading or cell of a table, its lines still lines."""
    return node.children[0].content if node.children else ""


def read_part(node: SyntaxTreeNode) -> LessonPart:
    if node.type == "paragraph":
        return Paragraph(inline_text(node))
    if node.type in ("bullet_list", "ordered_list"):
        if any(len(item.children) != 1 for item in node.children):
            raise fault(node, "an item of a list is one paragraph")
        items = tuple(inline_text(item.children[0]) for item in node.children)
        return BulletPoints(items, numbered=node.type == "ordered_list")
    if node.type == "table":
        rows = [tuple(map(inline_text, row.children)) for part in node.children for row in part.children]
        return TextTable(rows[0], tuple(rows[1:]))
    if node.type == "fence" and node.info.strip() in FENCES:
        try:
            return FENCES[node.info.strip()](node.content)
        except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
            raise fault(node, f"the fence {node.info.strip()} cannot be read ({error})") from error
    kind = f"{node.type} {node.info}".strip() if node.type == "fence" else node.type
    raise fault(node, f"{kind} has no place in a lesson; use text, lists, tables, or the fences {', '.join(FENCES)}")


def read_figure(text: str) -> FigureCall:
    settings = tomllib.loads(text)
    slider = settings.pop("slider", None)
    made = None
    if slider is not None:
        values = tuple(slider["values"])
        made = Slider(slider["setting"], values, slider.get("start", values[0]))
        if made.start not in values:
            raise TypeError(f"the slider starts at {made.start}, which is none of its values")
    return FigureCall(settings.pop("name"), settings, made)


def read_map(text: str) -> ModelMap:
    settings = tomllib.loads(text)
    return ModelMap(**settings)


FENCES: dict[str, Callable[[str], LessonPart]] = {
    "python": lambda text: CodeCell(text.rstrip("\n")),
    "formula": lambda text: Formula(text.rstrip("\n")),
    "figure": read_figure,
    "map": read_map,
}


def fault(node: SyntaxTreeNode | None, sentence: str) -> DataError:
    """An error that says where."""
    lines = cast("Any", node).map if node is not None else None
    return DataError(f"line {lines[0] + 1}: {sentence}" if lines else sentence)
