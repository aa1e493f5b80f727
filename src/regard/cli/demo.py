"""The first thing to run: two small translators at work, and what they looked at."""

from pathlib import Path

from regard.cli.outputs import check_target, writing
from regard.cli.pages import translations_page
from regard.files import put
from regard.tasks.text_translator import TextTranslator, Translation, open_translator
from regard.views.static.alignment import alignment_text

SENTENCES = (
    "The cat sat on the mat.",
    "My friend bought two books yesterday.",
    "The girl who is reading a book is my sister.",
    "Did you drink coffee at home this morning?",
)
MODELS = {"en-zh": "a Transformer", "en-zh-recurrent": "a recurrent network with Bahdanau attention"}
PAGE = "demo.html"
SHORT = 12  # tokens; a longer map is on the page


def demo(folder: Path) -> str:
    """What is printed; the page with every run is written into the folder."""
    page = folder / PAGE
    check_target(page, (".html",))
    found, said = [], []
    for name, about in MODELS.items():
        interpreter = open_translator(name)
        said.append(f"{name}: {about} of {size(interpreter)} weights, trained by regard on its own sentences")
        for one in interpreter.translate(SENTENCES):
            found.append((f"{name}: {one.source}", one))
            said.append(shown(one))
    with writing(page):
        put(page, translations_page("What two small translators look at", found).encode())
    said.append(
        f"Every layer and head of these runs is in {page}: open it in a browser. Next:\n\n"
        "  regard serve                       the same views, with the models behind them: type, run, edit, compare\n"
        '  regard translate en-zh "The dog is sleeping under the table." --see\n'
        "  regard train translate --help      train one of your own\n"
        "  regard demo --by-hand              attention worked by hand, step by step\n"
        "  regard models                      what else comes with the package"
    )
    return "\n\n".join(said)


def size(interpreter: TextTranslator) -> str:
    return f"{sum(p.numel() for p in interpreter.model.parameters()) / 1e6:.1f} million"


def shown(one: Translation) -> str:
    """A translation, with its map where that is small."""
    text = f"{one.source}\n→ {one.text}"
    rows, columns, weights = one.alignment()
    if max(len(rows), len(columns)) > SHORT:
        return text
    drawn = alignment_text(weights, rows, columns)
    return text + "\n\n" + "\n".join(f"  {line}".rstrip() for line in drawn.splitlines())
