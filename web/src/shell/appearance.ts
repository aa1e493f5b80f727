/** Light or dark: what the reader chose, else what the machine or the notebook around us shows. */
import { type ReadonlySignal, type Signal, computed, signal } from "@preact/signals";
import { DARK, LIGHT, type Theme } from "../paint/theme";
import { recall, remember } from "./remember";

export type Mode = "auto" | "light" | "dark";
export const MODES: readonly Mode[] = ["auto", "light", "dark"];

/** Whether what is around us is dark: a notebook says it on its body, else the machine does. */
function isDarkAround(): boolean {
  const { body } = document;
  const lab = body?.getAttribute("data-jp-theme-light"), code = body?.getAttribute("data-vscode-theme-kind");
  if (lab === "false" || lab === "true") return lab === "false";
  if (code !== null && code !== undefined) return code.includes("dark") || code === "vscode-high-contrast";
  return globalThis.matchMedia?.("(prefers-color-scheme: dark)").matches ?? false;
}

export interface Appearance {
  readonly mode: Signal<Mode>;
  readonly theme: ReadonlySignal<Theme>;
}

/** The colours now, as signals that follow the reader and the surroundings until `until` fires. */
export function appearance(until: AbortSignal): Appearance {
  const remembered = recall("theme");
  const mode = signal<Mode>(MODES.find((one) => one === remembered) ?? "auto");
  const dark = signal(isDarkAround());
  const look = (): void => {
    dark.value = isDarkAround();
  };
  globalThis.matchMedia?.("(prefers-color-scheme: dark)").addEventListener?.("change", look, { signal: until });
  const observer = new MutationObserver(look);
  const attributeFilter = ["data-jp-theme-light", "data-vscode-theme-kind"];
  observer.observe(document.body, { attributes: true, attributeFilter });
  until.addEventListener("abort", () => observer.disconnect(), { once: true });
  const theme = computed(() => (mode.value === "dark" || (mode.value === "auto" && dark.value) ? DARK : LIGHT));
  return { mode, theme };
}

/** The next way to look, remembered. */
export function nextMode(mode: Signal<Mode>): void {
  mode.value = MODES[(MODES.indexOf(mode.value) + 1) % MODES.length]!;
  remember("theme", mode.value);
}

const NAMES = ["ground", "raised", "ink", "pale", "line", "query", "key", "focus", "warn", "hatch"] as const;

/** Puts the colours on an element, as CSS variables. */
export function applyTheme(element: HTMLElement, theme: Theme): void {
  for (const name of NAMES) element.style.setProperty(`--${name}`, theme[name]);
  element.style.setProperty("color-scheme", theme.dark ? "dark" : "light");
  element.dataset["theme"] = theme.dark ? "dark" : "light";
}
