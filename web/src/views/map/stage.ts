/** The elements of a map: a plot with its canvas, buttons and labels over it, a legend below, and a voice. */
import { type Surface, surface } from "../../paint/canvas";
import type { Theme } from "../../paint/theme";
import type { Say } from "../../language/language";
import { setThemeColours } from "../parts/dom";
import { h, styled } from "../parts/element";
import type { Box } from "./geometry";

export interface Stage {
  readonly plot: HTMLElement;
  readonly paper: Surface;
  readonly legend: HTMLElement;
  readonly say: (sentence: string) => void; // to a screen reader
  readonly badge: (text: string, about: string) => void; // "" hides it
  /** What went wrong, over the cells and beside the names; `cells` is null where there are none. "" hides it. */
  readonly alarm: (text: string, again: (() => void) | null, words: Say, cells: Pick<Box, "x" | "y"> | null) => void;
  readonly wear: (theme: Theme) => void;
  readonly name: (words: Say, label: string, whole: boolean) => void;
  readonly focused: () => boolean;
}

export interface StageMoves {
  readonly nearer: () => void;
  readonly farther: () => void;
  readonly whole: () => void;
  readonly changed: () => void; // what the stage shows by itself, such as its focus, is other than before
}

const WARNING = { background: "var(--view-raised)", color: "var(--view-warn)", border: "1px solid var(--view-warn)" };

/** Fills `el`; `title` stands above the map. */
export function stageIn(el: HTMLElement, title: string, moves: StageMoves, signal: AbortSignal): Stage {
  const { frame, plot, legend } = frameIn(el, title, signal);
  const paper = surface(plot, signal), focused = watchFocus(paper.canvas, moves.changed, signal);
  const badge = badgeElement(), voice = voiceElement(), alert = new Alert(), buttons = new ZoomButtons(moves);
  plot.before(badge);
  plot.append(buttons.element, voice, alert.element);
  let worn: Theme | null = null;
  return {
    plot, paper, legend, focused,
    say: (sentence) => {
      voice.textContent = sentence;
    },
    badge: (text, about) => {
      badge.hidden = text === "";
      badge.textContent = text;
      badge.title = about;
    },
    alarm: (text, again, words, cells) => alert.show(text, again, words, cells),
    wear: (theme) => {
      if (theme !== worn) setThemeColours(frame, theme);
      worn = theme;
    },
    name: (words, label, whole) => {
      paper.canvas.setAttribute("aria-label", label);
      buttons.name(words, whole);
    },
  };
}

interface StageFrame {
  readonly frame: HTMLElement;
  readonly plot: HTMLElement;
  readonly legend: HTMLElement;
}

function frameIn(el: HTMLElement, title: string, signal: AbortSignal): StageFrame {
  const frame = styled("div", {
    position: "absolute", inset: "0", display: "flex", flexDirection: "column", overflow: "hidden",
    background: "var(--view-ground)",
  });
  if (getComputedStyle(el).position === "static") el.style.position = "relative";
  const heading = styled("div", {
    padding: "4px 12px 0", fontWeight: "600", fontSize: "13px", color: "var(--view-ink)",
  }, title);
  heading.hidden = title === "";
  const plot = styled("div", { position: "relative", flex: "1 1 0", minHeight: "0", overflow: "hidden" });
  const legend = styled("div", { flex: "0 0 auto" });
  legend.dataset["part"] = "legend";
  frame.append(heading, plot, legend);
  el.append(frame);
  signal.addEventListener("abort", () => frame.remove(), { once: true });
  return { frame, plot, legend };
}

/** Whether the canvas has the focus in a way that must be seen; `changed` is called when that is other than before. */
function watchFocus(canvas: HTMLCanvasElement, changed: () => void, signal: AbortSignal): () => boolean {
  let focused = false;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application");
  canvas.style.outline = "none"; // the ring is painted, inside, where nothing can cut it off
  canvas.addEventListener("focus", () => {
    focused = canvas.matches(":focus-visible");
    changed();
  }, { signal });
  canvas.addEventListener("keydown", () => {
    if (!focused) changed();
    focused = true;
  }, { signal });
  canvas.addEventListener("blur", () => {
    focused = false;
    changed();
  }, { signal });
  return () => focused;
}

function badgeElement(): HTMLElement {
  const badge = styled("div", {
    alignSelf: "flex-end", flex: "0 0 auto", margin: "2px 8px", padding: "1px 8px", borderRadius: "9px",
    fontSize: "12px", lineHeight: "18px", maxWidth: "calc(100% - 16px)", boxSizing: "border-box",
    overflow: "hidden", textOverflow: "ellipsis", whiteSpace: "nowrap", ...WARNING,
  });
  badge.dataset["part"] = "badge";
  badge.hidden = true;
  return badge;
}

/** What a screen reader says. */
function voiceElement(): HTMLElement {
  const voice = styled("div", {
    position: "absolute", width: "1px", height: "1px", overflow: "hidden", clipPath: "inset(50%)",
    whiteSpace: "nowrap",
  });
  voice.setAttribute("aria-live", "polite");
  return voice;
}

/** A sentence over the cells, with a button that tries again. */
class Alert {
  readonly element = styled("p", {
    position: "absolute", right: "12px", maxWidth: "560px", boxSizing: "border-box", margin: "0", padding: "8px 12px",
    borderRadius: "6px", zIndex: "4", fontSize: "14px", lineHeight: "1.6", overflowWrap: "anywhere", ...WARNING,
  });

  constructor() {
    this.element.setAttribute("role", "alert");
    this.element.hidden = true;
  }

  show(text: string, again: (() => void) | null, say: Say, cells: Pick<Box, "x" | "y"> | null): void {
    const { element } = this, { x, y } = cells ?? { x: 0, y: 16 };
    element.hidden = text === "";
    element.replaceChildren(text);
    // A narrow stage leaves it some room, and it lies over names then.
    Object.assign(element.style, { left: `min(${Math.round(x) + 12}px, 60%)`, top: `${Math.round(y) + 12}px` });
    if (again === null || text === "") return;
    const style = {
      marginLeft: "10px", padding: "1px 8px", font: "inherit", cursor: "pointer", borderRadius: "6px",
      color: "var(--view-ink)", background: "var(--view-ground)", border: "1px solid var(--view-line)",
    };
    element.append(h("button", { type: "button", onclick: again, style }, say("map.again")));
  }
}

/** Nearer, farther, all of it. */
class ZoomButtons {
  readonly element = styled("div", {
    position: "absolute", right: "8px", bottom: "8px", display: "flex", flexDirection: "column", gap: "4px",
    zIndex: "2",
  });
  private readonly buttons: readonly HTMLButtonElement[];

  constructor({ nearer, farther, whole }: StageMoves) {
    this.buttons = [zoomButton("+", nearer), zoomButton("−", farther), zoomButton(corners(), whole)];
    this.element.append(...this.buttons);
  }

  /** Words in the reader's language; where all is shown already, only zooming in makes sense. */
  name(say: Say, isWhole: boolean): void {
    (["map.zoomin", "map.zoomout", "map.whole"] as const).forEach((key, i) => {
      const button = this.buttons[i]!;
      button.title = say(key);
      button.setAttribute("aria-label", say(key));
      button.disabled = isWhole && i > 0;
      button.style.color = `var(--view-${button.disabled ? "line" : "ink"})`;
    });
  }
}

const zoomButton = (sign: string | SVGElement, press: () => void): HTMLButtonElement => h("button", {
  type: "button", onclick: press, style: {
    width: "28px", height: "28px", padding: "0", borderRadius: "6px", font: "600 16px/1 system-ui, sans-serif",
    cursor: "pointer", background: "var(--view-raised)", border: "1px solid var(--view-line)",
  },
}, sign);

/** Four corners: show all. Drawn, because few fonts have the sign. */
function corners(): SVGElement {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg"), path = document.createElementNS(space, "path");
  const box = { width: "14", height: "14", viewBox: "0 0 14 14", "aria-hidden": "true" };
  const line = { d: "M1 5V1h4M9 1h4v4M13 9v4H9M5 13H1V9", fill: "none", stroke: "currentColor", "stroke-width": "2" };
  for (const [name, value] of Object.entries(box)) svg.setAttribute(name, value);
  for (const [name, value] of Object.entries(line)) path.setAttribute(name, value);
  svg.append(path);
  return svg;
}
