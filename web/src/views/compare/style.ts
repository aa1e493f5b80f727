/** How the compare view looks. */
import { PLAIN } from "../parts/plainStyle";

export const COMPARE = `${PLAIN}
.rg-compare { display: flex; flex-direction: column; container-type: inline-size }
.rg-compare .facts { display: flex; flex-wrap: wrap; gap: 4px 22px; align-items: center; padding: 10px 16px 6px; font-variant-numeric: tabular-nums }
.rg-compare .facts > .read { flex: 1 1 100%; color: var(--r-pale) }
.rg-compare .facts .note { color: var(--r-pale); font-size: 13px; flex: 1 1 100% }
.rg-compare .facts strong { font-variant-numeric: tabular-nums }
.rg-compare .query { color: var(--r-query) }
.rg-compare .key { color: var(--r-key) }
.rg-compare .panels { flex: 1 1 0; min-height: 300px; display: grid; gap: 1px; grid-auto-columns: minmax(0, 1fr); grid-auto-flow: column; background: var(--r-line); border-top: 1px solid var(--r-line) }
.rg-compare .panel { position: relative; min-width: 0; min-height: 280px; background: var(--r-ground); overflow: hidden }
@container (max-width: 960px) {
  .rg-compare .panels { grid-auto-flow: row; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); grid-auto-rows: minmax(280px, 1fr) }
  .rg-compare .panel.wide { grid-column: 1 / -1 }
}
@container (max-width: 560px) {
  .rg-compare .panels { grid-template-columns: minmax(0, 1fr) }
}
`;
