"""Views that are drawn once: text for the terminal, figures (SVG, PNG, PDF), HTML for notebooks.

`terminal`, `figure` and `notebook` draw any map; `trace_terminal`, `trace_figure` and `trace_notebook` what a model
attended to, from the same `trace_parts`.
"""
