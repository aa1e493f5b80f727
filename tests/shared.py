"""Where real weights and data lie that no package registry has. Tests that want them are skipped where they are not."""

import os
from pathlib import Path

SHARED = Path(os.environ.get("REGARD_SHARED", Path(__file__).resolve().parents[2] / "shared"))
HOW = "see CONTRIBUTING.md, and set REGARD_SHARED to their folder"
MISSING_WEIGHTS = f"needs weights that no registry has; {HOW}"
MISSING_DATA = f"needs data sets that no registry has; {HOW}"
