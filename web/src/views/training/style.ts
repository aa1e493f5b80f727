/** How the training view looks. */
import { PLAIN } from "../parts/plainStyle";

export const TRAINING = `${PLAIN}
.rg-training { display: flex; flex-direction: column; container-type: inline-size }
.rg-training .top { display: flex; flex-wrap: wrap; gap: 6px 18px; align-items: center; padding: 10px 16px 8px; border-bottom: 1px solid var(--r-line) }
.rg-training .top .read { flex: 1 1 100%; color: var(--r-pale) }
.rg-training select { max-width: 240px }
.rg-training .transport { display: flex; gap: 8px; align-items: center; flex: 1 1 360px; min-width: 240px }
.rg-training .transport input { flex: 1 1 120px; min-width: 100px }
.rg-training .transport output { min-width: 7em; font-weight: 600; font-variant-numeric: tabular-nums }
.rg-training .body { flex: 1 1 0; min-height: 260px; display: flex }
.rg-training .map { position: relative; flex: 1 1 0; min-width: 0; min-height: 260px; overflow: hidden }
.rg-training .map > div { position: absolute; inset: 0 }
.rg-training .scores { flex: 0 0 282px; overflow: auto; padding: 8px 12px; border-left: 1px solid var(--r-line) }
.rg-training .scores h3 { margin: 0 0 4px; font-size: 14px }
.rg-training .charts svg { display: block; cursor: pointer; font-variant-numeric: tabular-nums }
.rg-training .progress { flex: 1 1 100%; font-variant-numeric: tabular-nums }
.rg-training .progress[data-state=failed] { color: var(--r-warn) }
.rg-training .runs { display: flex; flex-direction: column; gap: 2px; padding: 2px 0 6px }
.rg-training .runs > span { display: flex; gap: 8px; align-items: center; min-width: 0 }
.rg-training .runs svg { flex: none }
.rg-training .runs span span { overflow-wrap: anywhere }
.rg-training .scores .charts + h3 { margin-top: 10px }
.rg-training .settings { border-collapse: collapse; width: 100%; font-size: 13px }
.rg-training .settings th, .rg-training .settings td { text-align: left; vertical-align: top; padding: 2px 8px 2px 0; overflow-wrap: anywhere; font-weight: 400 }
.rg-training .settings thead th { border-bottom: 1px solid var(--r-line); font-weight: 600 }
.rg-training .settings tbody th { color: var(--r-pale) }
@container (max-width: 760px) {
  .rg-training .body { flex-direction: column }
  .rg-training .map { flex: 1 0 300px }
  .rg-training .scores { flex: none; border-left: 0; border-top: 1px solid var(--r-line) }
  .rg-training .charts { display: flex; flex-wrap: wrap }
}
`;
