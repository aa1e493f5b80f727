/** The elements of a map: a plot with its canvas, buttons and labels over it, a legend below, and a voice. */
import { type Surface, surface } from "../../paint/canvas";
import type { Theme } from "../../paint/theme";
import type { Say } from "../../shell/language";

export interface Stage {
  readonly plot: HTMLElement;
  readonly paper: Surface;
  readonly legend: HTMLElement;
  readonly say: (sentence: string) => void; // to a screen reader
  readonly badge: (text: string, about: string, theme: Theme) => void; // "" hides it
  readonly alarm: (text: string, again: (() => void) | null, words: Say, theme: Theme) => void; // "" hides it
  readonly dress: (words: Say, theme: Theme, label: string, whole: boolean) => void;
  readonly focused: () => boolean;
}

export interface StageMoves {
  readonly nearer: () => void;
  readonly farther: () => void;
  readonly whole: () => void;
  readonly changed: () => void; // what the stage shows by itself, such as its focus, is other than before
}

const made = <Name extends keyof HTMLElementTagNameMap>(
  name: Name, style: Partial<CSSStyleDeclaration>,
): HTMLElementTagNameMap[Name] => {
  const one = document.createElement(name);
  Object.assign(one.style, style);
  return one;
};

/** Fills `el`; `title` stands above the map. */
export function stageIn(el: HTMLElement, title: string, moves: StageMoves, signal: AbortSignal): Stage {
  const frame = made("div", {
    position: "absolute", inset: "0", display: "flex", flexDirection: "column", overflow: "hidden",
  });
  if (getComputedStyle(el).position === "static") el.style.position = "relative";
  const heading = made("div", { padding: "4px 12px 0", fontWeight: "600", fontSize: "13px" });
  heading.textContent = title;
  heading.hidden = title === "";
  const plot = made("div", { position: "relative", flex: "1 1 0", minHeight: "0", overflow: "hidden" });
  const legend = made("div", { flex: "0 0 auto" });
  legend.dataset["part"] = "legend";
  frame.append(heading, plot, legend);
  el.append(frame);
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

  const badge = made("div", {
    alignSelf: "flex-end", flex: "0 0 auto", margin: "2px 8px", padding: "1px 8px", borderRadius: "9px",
    fontSize: "12px", lineHeight: "18px", maxWidth: "calc(100% - 16px)", boxSizing: "border-box",
    overflow: "hidden", textOverflow: "ellipsis", whiteSpace: "nowrap",
  });
  badge.dataset["part"] = "badge";
  const buttons = made("div", {
    position: "absolute", right: "8px", bottom: "8px", display: "flex", flexDirection: "column", gap: "4px",
    zIndex: "2",
  });
  const button = (sign: string, act: () => void): HTMLButtonElement => {
    const one = made("button", {
      width: "28px", height: "28px", padding: "0", borderRadius: "6px", font: "600 16px/1 system-ui, sans-serif",
      cursor: "pointer",
    });
    one.type = "button";
    one.textContent = sign;
    one.addEventListener("click", act, { signal });
    buttons.append(one);
    return one;
  };
  const three = [button("+", moves.nearer), button("−", moves.farther), button("", moves.whole)] as const;
  three[2].append(corners());
  const voice = made("div", {
    position: "absolute", width: "1px", height: "1px", overflow: "hidden", clipPath: "inset(50%)",
    whiteSpace: "nowrap",
  });
  voice.setAttribute("aria-live", "polite");
  const alert = made("p", {
    position: "absolute", left: "12px", right: "12px", top: "28px", margin: "0", padding: "8px 12px",
    borderRadius: "6px", zIndex: "4", fontSize: "14px", overflowWrap: "anywhere",
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
    badge: (text, about, theme) => {
      badge.hidden = text === "";
      badge.textContent = text;
      badge.title = about;
      Object.assign(badge.style, { background: theme.raised, color: theme.warn, border: `1px solid ${theme.warn}` });
    },
    alarm: (text, again, words, theme) => {
      alert.hidden = text === "";
      alert.replaceChildren(text);
      Object.assign(alert.style, { background: theme.raised, color: theme.warn, border: `1px solid ${theme.warn}` });
      if (again === null || text === "") return;
      const retry = made("button", { marginLeft: "10px", font: "inherit", cursor: "pointer" });
      retry.type = "button";
      retry.textContent = words("map.again");
      retry.addEventListener("click", again, { signal });
      alert.append(retry);
    },
    dress: (words, theme, label, whole) => {
      heading.style.color = theme.ink;
      frame.style.background = theme.ground;
      canvas.setAttribute("aria-label", label);
      (["map.zoomin", "map.zoomout", "map.whole"] as const).forEach((key, i) => {
        const one = three[i]!;
        one.title = words(key);
        one.setAttribute("aria-label", words(key));
        one.disabled = whole && i > 0;
        Object.assign(one.style, {
          background: theme.raised, color: one.disabled ? theme.line : theme.ink, border: `1px solid ${theme.line}`,
        });
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
