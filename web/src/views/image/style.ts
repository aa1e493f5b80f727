/** How the image view looks. */
import { PLAIN } from "../parts/plainStyle";

export const IMAGE = `${PLAIN}
.rg-image { display: flex; flex-direction: column; gap: 8px; padding: 10px 16px }
.rg-image .bar { display: flex; flex-wrap: wrap; gap: 6px 18px; align-items: center }
.rg-image .chips { display: flex; flex-wrap: wrap; gap: 6px; max-height: 104px; overflow: auto; flex: none }
.rg-image .chips:empty { display: none }
.rg-image .chip { border-radius: 14px; padding: 2px 10px; min-height: 28px }
.rg-image .chip.query { color: var(--r-query) }
.rg-image .chip.key { color: var(--r-key) }
.rg-image .chip[aria-pressed=true] { border: 2px solid currentColor; font-weight: 700 }
.rg-image .chip:has(.glimpse) { display: grid; gap: 2px; justify-items: center; border-radius: 8px; padding: 4px 8px }
.rg-image .glimpse { height: 44px; image-rendering: pixelated; background: #8a8f98 }
.rg-image .stage { position: relative; flex: 1 1 0; min-height: 220px; cursor: crosshair; border-radius: 4px }
.rg-image .foot { display: flex; flex-wrap: wrap; gap: 4px 20px; align-items: center; font-variant-numeric: tabular-nums }
.rg-image .legend { display: flex; gap: 8px; align-items: center; font-size: 13px }
.rg-image .legend .strip { width: 120px; height: 12px; border-radius: 2px; border: 1px solid var(--r-line) }
.rg-image .note { font-size: 13px }
`;
