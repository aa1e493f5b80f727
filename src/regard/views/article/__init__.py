"""A page that is read from top to bottom, with the explorer at its end: each section tells of one run that it holds."""
