"""How an article looks: the colours of the explorer (web/src/paint/theme.ts), light and dark, on any width."""

from regard.views.static.shades import SHADE_CSS

STYLE = (
    """
:root{color-scheme:light dark;--ground:#ffffff;--raised:#f6f7f9;--ink:#1b2330;--pale:#566072;--line:#d3d8e0;
--query:#9a4a00;--key:#0b5cad;--focus:#1769d2;--mark:#fff1b8;--mark-line:#9a4a00}
@media(prefers-color-scheme:dark){:root{--ground:#12161d;--raised:#1a202a;--ink:#e8ecf2;--pale:#a3adbd;--line:#333c4a;
--query:#f2a65a;--key:#6db3f8;--focus:#7cb8ff;--mark:#4a3a12;--mark-line:#f2a65a}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);
font:16px/1.55 system-ui,"Noto Sans","Noto Sans CJK SC","PingFang SC","Microsoft YaHei","Noto Color Emoji",sans-serif}
main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 0;overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .5rem} h2{font-size:1.25rem;margin:0 0 .25rem} p{margin:.4rem 0}
h3{font-size:.9rem;font-weight:600;color:var(--pale);margin:0;padding-top:.15rem}
a{color:var(--focus)} :focus-visible{outline:2px solid var(--focus);outline-offset:2px}
nav{display:flex;flex-wrap:wrap;gap:.3rem 1rem;padding:.6rem 0;margin:.6rem 0 0;border-block:1px solid var(--line)}
main>section{padding:1.6rem 0 1.4rem;border-bottom:1px solid var(--line)}
.rows{display:grid;grid-template-columns:9.5rem minmax(0,1fr);gap:.8rem 1rem;margin:.9rem 0 0}
.rows>div>:first-child{margin-top:0} .rows>div>:last-child{margin-bottom:0}
.about,.note{color:var(--pale);font-size:.9rem} .said{font-size:1.15rem}
blockquote{margin:.3rem 0;padding:.5rem .8rem;background:var(--raised);border-left:3px solid var(--line);
border-radius:.2rem;white-space:pre-line}
mark{background:var(--mark);color:inherit;padding:.05em .15em;border-radius:.15em;
box-shadow:inset 0 -2px var(--mark-line)}
code{font:.85rem/1.5 ui-monospace,"Noto Sans Mono",monospace}
pre{margin:.2rem 0;padding:.45rem .7rem;background:var(--raised);border:1px solid var(--line);border-radius:.3rem;
white-space:pre-wrap} pre span{display:inline-block;max-width:100%;white-space:pre-wrap}
.chips{display:flex;flex-wrap:wrap;gap:.3rem;margin:.3rem 0 .6rem}
.chip{display:inline-block;text-align:center;line-height:1.25}
.chip small{display:block;font-size:.75rem;font-variant-numeric:tabular-nums}
.wide{overflow-x:auto;max-width:100%}
table{border-collapse:collapse;font-size:.9rem} th{font-weight:500;text-align:left}
.weights{border-collapse:separate;border-spacing:2px;overflow-wrap:normal}
.weights th,.weights td{white-space:nowrap;text-align:center;padding:.15rem .35rem;font-variant-numeric:tabular-nums}
.weights td.shade{min-width:2.3rem;font-size:.8rem;border-radius:.15rem}
.weights .query{text-align:right;color:var(--query)} .weights .key{color:var(--key)}
.bars{width:min(100%,28rem)} .bars th{padding:.1rem .8rem .1rem 0;white-space:nowrap}
.bars .number{padding-right:.6rem;text-align:right;font-variant-numeric:tabular-nums} .bars .bar{width:60%}
.bars i{display:block;height:.7rem;min-width:1px;background:var(--key);border-radius:.15rem}
.plain th,.plain td{padding:.2rem .9rem .2rem 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
.plain th{color:var(--pale)} .plain{overflow-wrap:normal} .plain :is(th,td):not(:last-child){white-space:nowrap}
ol{margin:.2rem 0;padding-left:1.6rem} summary{cursor:pointer;color:var(--pale);font-size:.9rem}
#explorer{padding:1.6rem 1rem 1rem;max-width:96rem;margin:0 auto}
#explorer>p,#explorer>h2{max-width:58rem;margin-inline:auto}
#regard{height:calc(100vh - 1.5rem);height:calc(100svh - 1.5rem);min-height:28rem;margin-top:.6rem}
#wait{max-width:40em;margin:4em auto;padding:0 1em}
@media(max-width:640px){.rows{grid-template-columns:minmax(0,1fr);gap:.15rem} .rows>div{margin-bottom:.7rem}
#explorer{padding-inline:.25rem} #explorer>p,#explorer>h2{padding-inline:.75rem} #regard{min-height:24rem}
.plain td{padding-right:.5rem} .weights th,.weights td{padding-inline:.1rem}
.weights .long{padding:.2rem 0;line-height:1.2;writing-mode:vertical-rl;transform:rotate(180deg);text-align:left}
.weights td.shade{min-width:1.75rem}}
"""
    + SHADE_CSS
)
