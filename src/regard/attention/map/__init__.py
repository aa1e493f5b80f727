"""The map of who looks at whom: any part of it, computed when somebody looks."""

from regard.attention.map.computed import Computed
from regard.attention.map.map import AttentionMap
from regard.attention.map.source import Source
from regard.attention.map.statistics import PooledMap
from regard.attention.weigh.dropout import DropoutRecord, drop

__all__ = ["AttentionMap", "Computed", "DropoutRecord", "PooledMap", "Source", "drop"]
