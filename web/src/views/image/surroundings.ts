/** What stands around the picture: tokens to choose, a legend, and what lies outside it. */
import { type Scale, unscaleWeight, viridis, weightColor } from "../../paint/color";
import { clipText, shortenText, markInvisible } from "../../paint/text";
import type { Say } from "../../language/language";
import { fourDigits } from "../../paint/digits";
import { h } from "../parts/element";
import type { PatchWeights } from "./paint";
import type { PatchGrid } from "./patches";

const CHIPS = 60; // so many tokens can be chosen at a time; the others through the other views

export interface ChipsOf {
  readonly tokens: readonly number[];
  readonly at: number; // the chosen one
  readonly kind: "query" | "key";
  readonly name: (token: number) => string;
  readonly pick: (token: number) => void;
  readonly picture: (token: number) => HTMLElement | null; // stands above its name
  readonly say: Say;
}

/** A button for each token, of many those around the chosen one. */
export function chipsOf({ tokens, at, kind, name, pick, picture, say }: ChipsOf): HTMLElement[] {
  const middle = Math.max(0, tokens.indexOf(at));
  const first = Math.max(0, Math.min(middle - CHIPS / 2, tokens.length - CHIPS));
  const shown = tokens.slice(first, first + CHIPS), left = tokens.length - shown.length;
  const chips: HTMLElement[] = shown.map((token) => {
    const text = name(token);
    return h(
      "button",
      {
        type: "button", class: `chip ${kind}`, "aria-pressed": String(token === at),
        title: `${token} ${shortenText(text)}`, onclick: () => pick(token),
      },
      picture(token),
      h("bdi", {}, clipText(markInvisible(text), 16, (part) => [...part].length)),
    );
  });
  if (left > 0) chips.push(h("span", { class: "pale" }, say("image.moreTokens", { count: left })));
  return chips;
}

/** What the query gives to tokens that are no patches; nothing where all are. */
export function outsideWords(
  weights: Float32Array, grid: PatchGrid, name: (token: number) => string, say: Say,
): string {
  const out = Array.from(weights, (weight, key) => ({ weight, key })).filter(({ key }) => !grid.patchOf.has(key));
  if (out.length === 0) return "";
  const share = out.reduce((total, one) => total + one.weight, 0);
  const first = out
    .sort((a, b) => b.weight - a.weight)
    .slice(0, 4)
    .map(({ weight, key }) => `${shortenText(name(key), 16)} ${fourDigits(weight)}`);
  return `${say("image.elsewhere", { share: fourDigits(share) })} ${first.join(", ")}${out.length > 4 ? " …" : ""}`;
}

/** The colours and the weights that they stand for; over a picture they are viridis. */
export function legendOf(
  { top, sorted }: PatchWeights, over: boolean, scale: Scale, dark: boolean, say: Say,
): HTMLElement[] {
  const steps = Array.from({ length: 13 }, (_, i) => (over ? viridis(i / 12) : weightColor(i / 12, dark)));
  const strip = h("span", { class: "strip", "aria-hidden": "true" });
  strip.style.backgroundImage = `linear-gradient(to right, ${steps.join(", ")})`;
  const ends = [unscaleWeight(0, scale, top, sorted), top].map((end) => h("span", {}, fourDigits(end)));
  return [h("span", { class: "pale" }, say("image.legend")), ends[0]!, strip, ends[1]!];
}
