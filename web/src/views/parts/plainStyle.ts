/** The plain look of views that are made of elements. Colours come in as variables that the view sets from the theme. */
import type { Theme } from "../../paint/theme";

/** Gives the element the theme's colours as variables. */
export function setColours(el: HTMLElement, theme: Theme): void {
  for (const name of ["ground", "raised", "ink", "pale", "line", "query", "key", "focus", "warn", "hatch"] as const)
    el.style.setProperty(`--r-${name}`, theme[name]);
}

/** What all views of this kind share: buttons, sentences, focus. */
export const PLAIN = `
.rg { height: 100%; overflow: auto; box-sizing: border-box; color: var(--r-ink); background: var(--r-ground); font-size: 14px; line-height: 1.45 }
.rg *, .rg *::before { box-sizing: border-box }
.rg p { margin: 0 }
.rg .pale { color: var(--r-pale) }
.rg button, .rg select { font: inherit; color: inherit; background: var(--r-raised); border: 1px solid var(--r-line); border-radius: 6px; padding: 3px 10px; min-height: 30px; cursor: pointer; white-space: nowrap }
.rg button:hover:not(:disabled) { border-color: var(--r-focus) }
.rg button:disabled { color: var(--r-pale); cursor: default; opacity: .6 }
.rg label { display: inline-flex; gap: 6px; align-items: center; cursor: pointer }
.rg input { accent-color: var(--r-focus) }
.rg :focus-visible { outline: 2px solid var(--r-focus); outline-offset: 1px }
.rg .message { padding: 24px; max-width: 60ch; color: var(--r-pale) }
.rg .message[role=alert] { color: var(--r-warn) }
`;
