/** How the paper looks. */
import { PLAIN } from "../parts/plainStyle";

export const PAPER = `${PLAIN}
.rg-numbers { padding: 0 16px 24px }
.rg-numbers .top { position: sticky; top: 0; left: 0; z-index: 3; background: var(--r-ground); padding: 10px 0 8px; border-bottom: 1px solid var(--r-line); display: flex; flex-wrap: wrap; gap: 6px 14px; align-items: center }
.rg-numbers .read { padding-top: 10px; max-width: 90ch; color: var(--r-pale) }
.rg-numbers .which { font-weight: 600 }
.rg-numbers .walk { display: inline-flex; gap: 8px; align-items: center; flex-wrap: wrap }
.rg-numbers .place { min-width: 8em; text-align: center; font-variant-numeric: tabular-nums }
.rg-numbers .diagram { overflow-x: auto; margin: 12px 0 14px }
.rg-numbers .diagram svg { display: block; font-variant-numeric: tabular-nums }
.rg-numbers .station { cursor: pointer; outline: none }
.rg-numbers .station:hover rect, .rg-numbers .station:focus-visible rect { stroke: var(--r-focus); stroke-width: 2 }
.rg-numbers .station.now rect { stroke: var(--r-focus); stroke-width: 2.2 }
.rg-numbers .steps { display: flex; flex-wrap: wrap; gap: 14px; align-items: flex-start }
.rg-numbers section { border: 1px solid var(--r-line); border-radius: 8px; background: var(--r-raised); padding: 10px 14px 14px; max-width: 100%; min-width: min(260px, 100%); display: grid; gap: 8px; grid-template-columns: minmax(min(230px, 100%), max-content); scroll-margin-top: 56px }
.rg-numbers section.now { border-color: var(--r-focus); box-shadow: 0 0 0 1px var(--r-focus) }
.rg-numbers h3 { margin: 0; font-size: 15px; display: flex; gap: 8px; align-items: baseline }
.rg-numbers h3 .number { color: var(--r-pale); font-weight: 400; font-variant-numeric: tabular-nums }
.rg-numbers .about { max-width: 46ch; width: 0; min-width: 100%; color: var(--r-pale); font-size: 13px }
.rg-numbers math { font-size: 17px; padding: 4px 0; max-width: 100%; overflow-x: auto; overflow-y: hidden }
.rg-numbers .reckoning { font-variant-numeric: tabular-nums; font-size: 14px }
.rg-numbers .check { font-size: 12px; color: var(--r-pale); font-variant-numeric: tabular-nums; max-width: 60ch }
.rg-numbers .check.wrong { color: var(--r-warn) }
.rg-numbers figure { margin: 0; display: grid; gap: 4px; grid-template-columns: minmax(0, max-content) }
.rg-numbers figcaption { font-size: 13px; font-weight: 600 }
.rg-numbers .frame { overflow: auto; max-height: 420px; max-width: 100% }
.rg-numbers table { border-collapse: separate; border-spacing: 0; font-size: 12.5px; font-variant-numeric: tabular-nums }
.rg-numbers td, .rg-numbers th { padding: 2px 7px; text-align: right; white-space: nowrap; font-weight: 400 }
.rg-numbers thead th, .rg-numbers thead td { position: sticky; top: 0; background: var(--r-raised); z-index: 1; color: var(--r-pale) }
.rg-numbers tbody th { position: sticky; left: 0; background: var(--r-raised); text-align: left }
.rg-numbers th.query { color: var(--r-query) }
.rg-numbers th.key, .rg-numbers thead th.key { color: var(--r-key) }
.rg-numbers th.hand { font-weight: 700 }
.rg-numbers th.channel { color: var(--r-pale) }
.rg-numbers td.hand, .rg-numbers strong.hand { box-shadow: inset 0 0 0 2px var(--r-focus); border-radius: 3px }
.rg-numbers strong.hand { padding: 1px 6px }
.rg-numbers tr.in-hand th { font-weight: 700 }
.rg-numbers tr.rest th, .rg-numbers tr.rest td { color: var(--r-pale) }
.rg-numbers tr.sum th, .rg-numbers tr.sum td { border-top: 1.5px solid var(--r-pale); font-weight: 600; color: var(--r-ink) }
.rg-numbers [data-key], .rg-numbers [data-query] { cursor: pointer }
.rg-numbers [data-key]:hover { text-decoration: underline }
.rg-numbers .blocked { color: var(--r-pale); background-color: var(--r-raised); background-image: repeating-linear-gradient(135deg, transparent 0 4px, color-mix(in srgb, var(--r-hatch) 55%, transparent) 4px 5px) }
.rg-numbers strong.blocked { background-image: none }
.rg-numbers mtd { text-align: left }
.rg-numbers table.lines thead th:first-child { text-align: left }
.rg-numbers .strip { list-style: none; margin: 0; padding: 0; display: grid; grid-template-columns: repeat(4, max-content); gap: 2px 12px; font-variant-numeric: tabular-nums; font-size: 12.5px; text-align: right }
.rg-numbers .strip .pale { grid-column: 1 / -1; text-align: left }
`;
