"""The explorer's Python side: the bundle built from `web/`, what holds it, and the answers that its views ask for.

`page` needs no Python once written, `widget` asks the kernel, `regard.app` serves the same over HTTP; the last two
answer by `answer`.
"""
