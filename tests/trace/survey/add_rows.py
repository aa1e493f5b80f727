"""Put rows of models that docs/survey.md has not looked at yet into it: `python -m tests.trace.survey.add_rows FOLDER`.

FOLDER holds what `tests.trace.survey.run` wrote, a LIBRARY.jsonl for each library.
"""

import sys
from pathlib import Path

from tests.trace.survey.libraries import LIBRARIES
from tests.trace.survey.page import add_rows
from tests.trace.survey.run import read

PAGE = Path("docs/survey.md")

if __name__ == "__main__":
    for library in LIBRARIES.values():
        library.load()
    rows = {key: read(Path(sys.argv[1]) / f"{key}.jsonl") for key in LIBRARIES}
    PAGE.write_text(add_rows(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
