/** What the colours mean, below the map: a bar with numbers, the rule of a pixel, and a key for each hatch in sight. */
import { significant } from "../../paint/digits";
import { unscaleWeight } from "../../paint/color";
import { type HatchKind, hatch } from "../../paint/hatch";
import type { Theme } from "../../paint/theme";
import type { Say } from "../../language/language";
import { styled } from "../parts/element";
import type { Colouring } from "./colours";

export const BAR = { width: 168, height: 10 };

export interface LegendFacts {
  readonly by: Colouring;
  readonly level: number;
  readonly sampled: number; // 0: exact
  readonly finer: boolean; // tiles are still on their way
  readonly hatches: readonly HatchKind[];
}

/** Numbers beside the bar, each with its place from 0 to 1. */
export function marks(by: Colouring): { at: number; text: string }[] {
  const places = by.scale === "log" && !by.diverging ? [0, 0.25, 0.5, 0.75, 1] : [0, 0.5, 1];
  return places.map((at) => {
    const value = by.diverging
      ? Math.sign(at - 0.5) * unscaleWeight(Math.abs(2 * at - 1), by.scale, by.top, by.sorted)
      : unscaleWeight(at, by.scale, by.top, by.sorted);
    const text = significant(value, 3);
    return { at, text: by.diverging && at === 1 ? `+${text}` : text };
  });
}

/** The sentences of a legend: how colours are chosen, and what a pixel stands for. */
export function sentences({ by, level, sampled, finer }: LegendFacts, say: Say): string[] {
  const top = significant(by.top, 3), n = 2 ** level;
  const kind = level === 0 ? "single" : by.pool === "max" ? "largest" : "mean";
  const colours =
    by.scale === "rank"
      ? say(by.step > 1 ? "map.rankedsome" : "map.ranked", { n: by.sorted.length, step: by.step })
      : say(by.scale === "log" ? "map.log" : "map.linear", { top });
  const rule = say(by.diverging ? `map.${kind}difference` : `map.${kind}`, { n });
  return [
    rule, ...(sampled > 1 ? [say("map.sampled", { n: sampled })] : []),
    ...(finer && sampled <= 1 ? [say("map.finer")] : []), colours,
  ];
}

const WORDS = { blocked: "map.blocked", padding: "map.padding", unknown: "map.unknown" } as const;
export const hatchWords = (kind: HatchKind, say: Say): string => say(WORDS[kind]);

/** A legend in `el`; what it gives shows new facts, and does nothing where they are the old ones. */
export function legend(el: HTMLElement, say: Say): (facts: LegendFacts, theme: Theme) => void {
  let last = "";
  return (facts, theme) => {
    const words = sentences(facts, say), keys = facts.hatches.map((kind) => hatchWords(kind, say));
    const now = JSON.stringify([words, keys, facts.by.name, theme.ground]);
    if (now === last) return;
    last = now;
    Object.assign(el.style, {
      display: "flex", flexWrap: "wrap", alignItems: "center", gap: "2px 18px", padding: "4px 12px 6px",
      fontSize: "12px",
      lineHeight: "18px", color: theme.pale, background: theme.ground,
    });
    el.replaceChildren(
      bar(facts.by, theme),
      ...words.map((text) => styled("span", {}, text)),
      ...facts.hatches.map((kind, i) => styled("span", {}, swatch(kind, theme), keys[i]!)),
    );
  };
}

function bar(by: Colouring, theme: Theme): HTMLElement {
  const canvas = styled("canvas", {
    display: "block", width: "100%", height: `${BAR.height}px`, marginTop: "2px", boxSizing: "border-box",
    border: `1px solid ${theme.line}`,
  });
  canvas.width = 256;
  canvas.height = 1;
  canvas.getContext("2d")?.putImageData(new ImageData(Uint8ClampedArray.from(by.bytes), 256, 1), 0, 0);
  const numbers = marks(by).map(({ at, text }) => styled("span", {
    position: "absolute", top: `${BAR.height + 2}px`, left: `${100 * at}%`, transform: "translateX(-50%)",
    whiteSpace: "nowrap",
  }, text));
  return styled("span", {
    position: "relative", display: "inline-block", width: `${BAR.width}px`, height: "30px", margin: "0 20px",
  }, canvas, ...numbers);
}

function swatch(kind: HatchKind, theme: Theme): HTMLElement {
  const canvas = styled("canvas", {
    width: "24px", height: "14px", verticalAlign: "-2px", marginRight: "6px", border: `1px solid ${theme.line}`,
    boxSizing: "border-box",
  });
  canvas.width = 48;
  canvas.height = 28;
  const pen = canvas.getContext("2d");
  if (pen !== null) {
    pen.scale(2, 2);
    pen.fillStyle = hatch(pen, theme, kind);
    pen.fillRect(0, 0, 24, 14);
  }
  return canvas;
}
