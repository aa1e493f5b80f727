/** Small pieces of a page, made without markup strings: text reaches it only as text. */
import type { Theme } from "../../paint/theme";
import { styled, type Style } from "./element";

export const FAMILY = "system-ui, 'Noto Sans', 'Noto Sans CJK SC', sans-serif"; // as in figures

const SMALL: Style = {
  font: "inherit", fontSize: "13px", color: "var(--view-ink)", background: "var(--view-ground)",
  border: "1px solid var(--view-line)", borderRadius: "6px", padding: "2px 8px", minHeight: "26px", cursor: "pointer",
};

/** A button; its words are set by whoever knows the language. */
export function button(pressed: () => void, signal: AbortSignal): HTMLButtonElement {
  const element = styled("button", SMALL);
  element.type = "button";
  element.addEventListener("click", pressed, { signal });
  return element;
}

/** A list to choose from. */
export function select(chosen: (value: string) => void, signal: AbortSignal): HTMLSelectElement {
  const list = styled("select", SMALL);
  list.addEventListener("change", () => chosen(list.value), { signal });
  return list;
}

type Option = readonly [value: string, words: string];

/** Fills a list with values and their words, if they are others than before. */
export function fillSelect(list: HTMLSelectElement, options: readonly Option[], now: string): void {
  const same = list.options.length === options.length &&
    options.every(([value, words], i) => list.options[i]!.value === value && list.options[i]!.textContent === words);
  if (!same)
    list.replaceChildren(...options.map(([value, words]) => {
      const option = styled("option", {}, words);
      option.value = value;
      return option;
    }));
  list.value = now;
}

/** A slider between 0 and 1 in `steps`. */
export function slider(steps: number, moved: (share: number) => void, signal: AbortSignal): HTMLInputElement {
  const range = styled("input", { width: "110px", margin: "0", accentColor: "var(--view-focus)", cursor: "pointer" });
  range.type = "range";
  range.min = "0";
  range.max = String(steps);
  range.step = "1";
  range.addEventListener("input", () => moved(Number(range.value) / steps), { signal });
  return range;
}

export interface ViewFrame {
  readonly root: HTMLElement;
  readonly bar: HTMLElement; // controls
  readonly stage: HTMLElement; // what is painted
  readonly foot: HTMLElement; // what a reader must know of it
  readonly live: HTMLElement; // what a screen reader says
  /** Shows one sentence in place of the picture; "" takes it away. */
  readonly alert: (sentence: string) => void;
  readonly dress: (theme: Theme) => void;
}

/** Controls above, a stage that takes the room that is left, words below. */
export function viewFrame(el: HTMLElement, signal: AbortSignal): ViewFrame {
  const row: Style = {
    display: "flex", flexWrap: "wrap", alignItems: "center", gap: "6px 14px", padding: "6px 12px", fontSize: "13px",
    flex: "none", overflowY: "auto",
  };
  const bar = styled("div", { ...row, maxHeight: "40%", borderBottom: "1px solid var(--view-line)" });
  const stage = styled("div", { position: "relative", flex: "1 1 0", minHeight: "0", overflow: "hidden" });
  const foot = styled("div", {
    ...row, gap: "1px 14px", lineHeight: "1.35", borderTop: "1px solid var(--view-line)", color: "var(--view-pale)",
    maxHeight: "38%",
  });
  const live = styled("div", {
    position: "absolute", width: "1px", height: "1px", overflow: "hidden", clipPath: "inset(50%)",
  });
  live.setAttribute("aria-live", "polite");
  const warning = styled("p", {
    position: "absolute", left: "0", right: "0", top: "0", margin: "0", padding: "24px 32px", color: "var(--view-warn)",
    background: "var(--view-ground)", bottom: "0", zIndex: "2", overflowY: "auto", fontSize: "14px",
  });
  warning.setAttribute("role", "alert");
  warning.hidden = true;
  stage.append(warning);
  const root = styled("div", {
    position: "absolute", inset: "0", display: "flex", flexDirection: "column", overflow: "hidden", fontFamily: FAMILY,
    color: "var(--view-ink)", background: "var(--view-ground)",
  }, bar, stage, foot, live);
  if (getComputedStyle(el).position === "static") el.style.position = "relative";
  el.append(root);
  signal.addEventListener("abort", () => root.remove(), { once: true });
  let worn: Theme | null = null;
  return {
    root, bar, stage, foot, live,
    alert: (sentence) => {
      warning.textContent = sentence;
      warning.hidden = sentence === "";
    },
    dress: (theme) => {
      if (theme !== worn) setThemeColours(root, theme);
      worn = theme;
    },
  };
}

/** Gives an element, and all in it, the colours by name: `var(--view-ink)`. */
export function setThemeColours(root: HTMLElement, theme: Theme): void {
  for (const name of ["ground", "raised", "ink", "pale", "line", "focus", "warn"] as const)
    root.style.setProperty(`--view-${name}`, theme[name]);
  root.style.colorScheme = theme.dark ? "dark" : "light"; // sliders and lists follow it
}

/** Paints once per frame however often it is asked to. */
export function perFrame(paint: () => void, signal: AbortSignal): () => void {
  let isPending = false;
  return () => {
    if (isPending || signal.aborted) return;
    isPending = true;
    requestAnimationFrame(() => {
      isPending = false;
      if (!signal.aborted) paint();
    });
  };
}

export interface Place {
  readonly x: number;
  readonly y: number;
}

/** Where the pointer is on an element, in CSS pixels. */
export function pointerPlace(event: MouseEvent, element: Element): Place {
  const box = element.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

/** Keeps a key from the browser and from the shell, which would move the selection. */
export function takeKey(event: KeyboardEvent): void {
  event.preventDefault();
  event.stopPropagation();
}

export const hasModifier = (event: KeyboardEvent): boolean => event.ctrlKey || event.metaKey || event.altKey;

/** The width of a text in a font, on this canvas. */
export const textMeasure = (context: CanvasRenderingContext2D, font: string) => (text: string): number => {
  context.font = font;
  return context.measureText(text).width;
};
