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
  let worn: Theme | null = null;
  signal.addEventListener("abort", () => frame.remove(), { once: true });

  const paper = surface(plot, signal);
  const { canvas } = paper;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application");
  canvas.style.outline = "none"; // the ring is painted, inside, where nothing can cut it off
  let focused = false;
  canvas.addEventListener("focus", () => {
    focused = canvas.matches(":focus-visible");
    moves.changed();
  }, { signal });
  canvas.addEventListener("keydown", () => {
    if (!focused) moves.changed();
    focused = true;
  }, { signal });
  canvas.addEventListener("blur", () => {
    focused = false;
    moves.changed();
  }, { signal });

  const badge = styled("div", {
    alignSelf: "flex-end", flex: "0 0 auto", margin: "2px 8px", padding: "1px 8px", borderRadius: "9px",
    fontSize: "12px", lineHeight: "18px", maxWidth: "calc(100% - 16px)", boxSizing: "border-box",
    overflow: "hidden", textOverflow: "ellipsis", whiteSpace: "nowrap", ...WARNING,
  });
  badge.dataset["part"] = "badge";
  const buttons = styled("div", {
    position: "absolute", right: "8px", bottom: "8px", display: "flex", flexDirection: "column", gap: "4px",
    zIndex: "2",
  });
  const button = (sign: string, act: () => void): HTMLButtonElement => {
    const one = h("button", {
      type: "button", onclick: act, style: {
        width: "28px", height: "28px", padding: "0", borderRadius: "6px", font: "600 16px/1 system-ui, sans-serif",
        cursor: "pointer", background: "var(--view-raised)", border: "1px solid var(--view-line)",
      },
    }, sign);
    buttons.append(one);
    return one;
  };
  const three = [button("+", moves.nearer), button("−", moves.farther), button("", moves.whole)] as const;
  three[2].append(corners());
  const voice = styled("div", {
    position: "absolute", width: "1px", height: "1px", overflow: "hidden", clipPath: "inset(50%)",
    whiteSpace: "nowrap",
  });
  voice.setAttribute("aria-live", "polite");
  const alert = styled("p", {
    position: "absolute", right: "12px", maxWidth: "560px", boxSizing: "border-box", margin: "0", padding: "8px 12px",
    borderRadius: "6px", zIndex: "4", fontSize: "14px", lineHeight: "1.6", overflowWrap: "anywhere", ...WARNING,
  });
  alert.setAttribute("role", "alert");
  alert.hidden = true;
  badge.hidden = true;
  plot.before(badge);
  plot.append(buttons, voice, alert);

  return {
    plot, paper, legend,
    focused: () => focused,
    say: (sentence) => {
      voice.textContent = sentence;
    },
    badge: (text, about) => {
      badge.hidden = text === "";
      badge.textContent = text;
      badge.title = about;
    },
    alarm: (text, again, words, cells) => {
      alert.hidden = text === "";
      alert.replaceChildren(text);
      const { x, y } = cells ?? { x: 0, y: 16 }; // a narrow stage leaves it some room, and it lies over names then
      Object.assign(alert.style, { left: `min(${Math.round(x) + 12}px, 60%)`, top: `${Math.round(y) + 12}px` });
      if (again === null || text === "") return;
      const style = {
        marginLeft: "10px", padding: "1px 8px", font: "inherit", cursor: "pointer", borderRadius: "6px",
        color: "var(--view-ink)", background: "var(--view-ground)", border: "1px solid var(--view-line)",
      };
      alert.append(h("button", { type: "button", onclick: again, style }, words("map.again")));
    },
    wear: (theme) => {
      if (theme !== worn) setThemeColours(frame, theme);
      worn = theme;
    },
    name: (words, label, whole) => {
      canvas.setAttribute("aria-label", label);
      (["map.zoomin", "map.zoomout", "map.whole"] as const).forEach((key, i) => {
        const one = three[i]!;
        one.title = words(key);
        one.setAttribute("aria-label", words(key));
        one.disabled = whole && i > 0;
        one.style.color = `var(--view-${one.disabled ? "line" : "ink"})`;
      });
    },
  };
}

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
