"""Every small architecture that the watcher is tested with, by name."""

from tests.trace.species import Species
from tests.trace.zoo_audio import AUDIO
from tests.trace.zoo_decoders import DECODERS
from tests.trace.zoo_encoders import ENCODERS
from tests.trace.zoo_pairs import PAIRS
from tests.trace.zoo_vision import VISION

ALL = [*ENCODERS, *DECODERS, *PAIRS, *VISION, *AUDIO]
ZOO: dict[str, Species] = {species.name: species for species in ALL}

if len(ZOO) != len(ALL):
    raise ValueError("two architectures have the same name")
