"""Something to look at. A row is a query, a column is a key, in every picture.

`static` draws once: in the terminal, as a figure, as HTML in a notebook. `explorer` is the interactive one: a page, a
widget, and the answers to what its views ask of a trace.
"""
