"""What stands in a notebook where the explorer cannot: saved, exported, or opened again without its kernel."""

from html import escape

from regard.trace.record.trace import Trace
from regard.views.static.trace_notebook import layer_html, trace_html

LAYERS = 12  # shown at most: a notebook with such a picture stays small
AGAIN = "Static preview: run this cell again to explore it. 静态预览：重新运行此单元格即可交互查看。"


def still_html(trace: Trace, layer: int, key: str) -> str:
    """The layers with their heads, or the heads of one layer where it is named (−1: none is); a page's worth of HTML
    without a script. A live explorer hides what has the class of its key.
    """
    shown = trace_html(trace, LAYERS) if layer < 0 else layer_html(trace.layers[layer])
    return f'<div class="regard-still regard-still-{escape(key)}">{shown}<p><small>{escape(AGAIN)}</small></p></div>'
