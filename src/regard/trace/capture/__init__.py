"""Capture: the calls of a watched model are kept as small as can be, and assembled into the layers of a trace."""
