"""The figures of the lessons by their names: functions from settings to panels of numbers."""

from collections.abc import Callable

from regard.learn.figures.cache import count_projections
from regard.learn.figures.collapse import stack_blocks
from regard.learn.figures.cost import compare_cost
from regard.learn.figures.example import walk_example
from regard.learn.figures.fixed_context import show_lengths
from regard.learn.figures.heads import split_example
from regard.learn.figures.importance import weigh_words
from regard.learn.figures.likeness import compare_positions
from regard.learn.figures.masks import show_masks
from regard.learn.figures.panels import LessonFigure
from regard.learn.figures.patches import show_shapes
from regard.learn.figures.performer import measure_features
from regard.learn.figures.regression import fit_curve
from regard.learn.figures.regression_map import show_regression_map
from regard.learn.figures.saturation import measure_saturation
from regard.learn.figures.scores import compare_scores
from regard.learn.figures.sinusoids import show_sinusoids
from regard.learn.figures.softmax import heat_softmax

FIGURES: dict[str, Callable[..., LessonFigure]] = {
    "cache": count_projections,
    "collapse": stack_blocks,
    "cost": compare_cost,
    "example": walk_example,
    "fixed-context": show_lengths,
    "heads": split_example,
    "importance": weigh_words,
    "likeness": compare_positions,
    "masks": show_masks,
    "performer": measure_features,
    "regression": fit_curve,
    "regression-map": show_regression_map,
    "saturation": measure_saturation,
    "scores": compare_scores,
    "shapes": show_shapes,
    "sinusoids": show_sinusoids,
    "softmax": heat_softmax,
}
