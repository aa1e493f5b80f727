/** How the two readings look. */
import { PLAIN } from "../parts/plainStyle";

export const READINGS = `${PLAIN}
.rg-readings { container-type: size; font-variant-numeric: tabular-nums }
.rg-readings .read { padding: 8px 16px; color: var(--r-pale) }
.rg-readings .read span { margin-inline-end: 5px }
.rg-readings .sides { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); column-gap: 1px; background: var(--r-line); border-block: 1px solid var(--r-line) }
.rg-readings .side { background: var(--r-ground); min-width: 0; display: grid; grid-row: span 3; grid-template: subgrid / minmax(0, 1fr) }
.rg-readings .bar { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: center; padding: 6px 12px 0; min-width: 0 }
.rg-readings .bar strong { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; min-width: 0 }
.rg-readings .pickers select { min-height: 26px; padding: 1px 4px }
.rg-readings .numbers > .pale { padding-top: 6px; font-size: 13px }
.rg-readings .pickers { display: inline-flex; gap: 4px 10px; flex-wrap: wrap; font-size: 13px }
.rg-readings .side > [data-part=caption] { padding: 2px 12px; font-size: 13px; min-height: 23px }
.rg-readings .plot { position: relative; height: max(300px, 54cqh); overflow: hidden }
.rg-readings .guesses, .rg-readings .numbers { padding: 10px 16px }
.rg-readings h3 { font-size: 14px; margin: 0 0 2px }
.rg-readings .strip { display: flex; flex-wrap: wrap; gap: 4px; padding: 8px 0; align-items: center }
.rg-readings .word { display: grid; padding: 2px 6px; min-width: 44px; text-align: center; line-height: 1.3 }
.rg-readings .word .share { font-size: 12px; position: relative; padding-bottom: 4px; white-space: nowrap }
.rg-readings .word[aria-pressed=true] { border-color: var(--r-focus); box-shadow: inset 0 0 0 1px var(--r-focus) }
.rg-readings .word:disabled { opacity: 1; color: var(--r-pale) }
.rg-readings .measure { display: block; height: 4px; background: var(--r-line); border-radius: 2px; overflow: hidden }
.rg-readings .measure i { display: block; height: 100%; background: var(--r-focus) }
.rg-readings .two { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 8px 24px }
.rg-readings .list ol { list-style: none; margin: 4px 0; padding: 0 }
.rg-readings .list li { display: grid; grid-template-columns: minmax(60px, 8em) minmax(0, 1fr) 4.5em; gap: 8px; align-items: center }
.rg-readings .list .name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
.rg-readings .list .number { text-align: end }
.rg-readings .seen { overflow-wrap: anywhere }
.rg-readings .gap { margin: 0 4px; color: var(--r-query); font-weight: 600 }
.rg-readings table { border-collapse: collapse; width: 100%; font-size: 13px }
.rg-readings th, .rg-readings td { padding: 3px 8px; text-align: end; border-bottom: 1px solid var(--r-line); font-weight: 400; overflow-wrap: anywhere }
.rg-readings thead th { font-weight: 600; border-bottom: 0 }
.rg-readings thead tr:last-child th { color: var(--r-pale); font-weight: 400; border-bottom: 1px solid var(--r-line) }
.rg-readings th[scope=row] { text-align: start }
.rg-readings td { white-space: nowrap }
.rg-readings [data-row=written] td { white-space: normal }
@container (max-width: 560px) {
  .rg-readings .sides, .rg-readings .two { grid-template-columns: minmax(0, 1fr) }
  .rg-readings th, .rg-readings td { padding: 3px 4px }
}
`;
