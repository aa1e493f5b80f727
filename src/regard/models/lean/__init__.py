"""A loop of plain torch over joined weights and caches of fixed size: the same numbers with fewer calls."""
