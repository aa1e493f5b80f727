"""The libraries that are surveyed, by the names they are imported by."""

from tests.trace.survey.folders import TRANSFORMERS
from tests.trace.survey.library import Library
from tests.trace.survey.timm_models import TIMM
from tests.trace.survey.vit_pytorch_models import VIT_PYTORCH
from tests.trace.survey.x_transformers_models import X_TRANSFORMERS

LIBRARIES: dict[str, Library] = {one.needs: one for one in (TRANSFORMERS, TIMM, X_TRANSFORMERS, VIT_PYTORCH)}
