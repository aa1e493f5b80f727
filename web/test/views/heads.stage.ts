/** A stage for views in tests: an element that has a size, and a view on it. */
import { Choice, FIRST, type Selection, PLAIN, type DrawSettings } from "../../src/choose/choice";
import { LIGHT } from "../../src/paint/theme";
import { say } from "../../src/language/language";
import type { Source } from "../../src/trace/source";
import type { ViewExports, View } from "../../src/views/parts/view";

for (const [name, size] of [["clientWidth", 900], ["clientHeight", 500]] as const)
  Object.defineProperty(HTMLElement.prototype, name, { configurable: true, get: () => size });

export interface Staged<Probe> {
  readonly el: HTMLElement;
  readonly choice: Choice;
  readonly shown: ViewExports;
  readonly probe: Probe;
  readonly leave: () => void;
  readonly words: () => string;
}

/** Puts a view over a source. */
export function staged<Probe>(view: View, source: Source, picked: Partial<Selection> = {},
  drawn: Partial<DrawSettings> = {}): Staged<Probe> {
  const el = document.body.appendChild(document.createElement("div")), gone = new AbortController();
  const choice = new Choice({ ...FIRST, ...picked }, { ...PLAIN, ...drawn });
  const shown = view({ el, source, other: null, choice, say, theme: () => LIGHT, server: null, signal: gone.signal });
  return {
    el, choice, shown, probe: (el as unknown as { regard: Probe }).regard,
    leave: () => {
      gone.abort();
      el.remove();
    },
    words: () => el.textContent ?? "",
  };
}

/** Waits until it holds, for some seconds at most. */
export async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 1000 && !holds(); i++) await new Promise((done) => setTimeout(done, 5));
  if (!holds()) throw new Error("it did not come to hold in time");
}

export const press = (el: HTMLElement, key: string): boolean =>
  el.querySelector("[tabindex]")!.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));

/** Tokens that try to break out of a page. */
export const HOSTILE = [
  "</script><script>window.broken = 1</script>", "<img src=x onerror=\"window.broken = 1\">", "<!--<script>", "\"'`",
    "\u2028", "\u202egnp\u202c",
  "\u0000", "\ud800", "👩‍👩‍👧", "x".repeat(10_000), "", " ",
];
