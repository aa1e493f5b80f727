"""The first thing to run: two small translators at work, and what they looked at."""

from pathlib import Path

from regard.cli.outputs import check_target, explain_write_errors
from regard.cli.pages import make_translations_page
from regard.files import put
from regard.tasks.text_translator import TextTranslator, Translation, open_translator
from regard.views.static.alignment import alignment_text

SENTENCES = (
    "The cat sat on the mat.",
    "My friend bought two books yesterday.",
    "The girl who is reading a book is my sister.",
    "Did you drink coffee at home this morning?",
)
MODELS = {
    "en-zh": "a Transformer with {size} parameters, trained by regard on everyday sentences",
    "en-zh-grammar-recurrent": "a recurrent network with Bahdanau attention and {size} parameters, trained by regard "
    "on generated sentences",
}
PAGE = "demo.html"
SHORT = 12  # tokens; a longer map is on the page


def write_demo(folder: Path) -> str:
    """Translate a few sentences by both models, write the page with every run, and return what to print."""
    page = folder / PAGE
    check_target(page, (".html",))
    translations, said = [], []
    for name, about in MODELS.items():
        translator = open_translator(name)
        limits = translator.facts.get("limits")
        said.append(f"{name}: {about.format(size=count_weights(translator))}" + (f"; {limits}" if limits else ""))
        for one in translator.translate(SENTENCES):
            translations.append((f"{name}: {one.source}", one))
            said.append(translation_text(one))
    with explain_write_errors(page):
        put(page, make_translations_page("What two small translators look at", translations).encode())
    said.append(
        f"Every layer and head of these runs is in {page}: open it in a browser. Next:\n\n"
        "  regard serve                       the same views with live models: type, run, edit, compare\n"
        '  regard translate "Where is the nearest train station?" --see\n'
        "  regard compare-models              a GPT and a BERT read one text, side by side\n"
        "  regard train translate --help      train your own\n"
        "  regard demo tasks                  every task on its own small model, on one page\n"
        "  regard demo pictures               models that look at pictures, and where they look\n"
        "  regard demo --by-hand              attention computed by hand, step by step\n"
        "  regard models                      list the models that come with the package"
    )
    return "\n\n".join(said)


def count_weights(translator: TextTranslator) -> str:
    return f"{sum(p.numel() for p in translator.model.parameters()) / 1e6:.1f} million"


def translation_text(one: Translation) -> str:
    """A translation, with its map where that is small."""
    text = f"{one.source}\n→ {one.text}"
    rows, columns, weights = one.alignment()
    if max(len(rows), len(columns)) > SHORT:
        return text
    drawn = alignment_text(weights, rows, columns)
    return text + "\n\n" + "\n".join(f"  {line}".rstrip() for line in drawn.splitlines())
