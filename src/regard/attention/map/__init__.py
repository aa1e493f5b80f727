"""The map of who looks at whom: asked, not stored."""

from regard.attention.map.asked import Asked
from regard.attention.map.map import AttentionMap, Dropped, drop
from regard.attention.map.statistics import Pooled

__all__ = ["Asked", "AttentionMap", "Dropped", "Pooled", "drop"]
