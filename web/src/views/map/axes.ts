/** Names along the map: all where there is room, some where there is less, else numbers; those in hand always. */
import type { Hover } from "../../choose/choice";
import type { Theme } from "../../paint/theme";
import { type Box, type Camera, type MapShape, visiblePart, xOf, yOf } from "./geometry";
import { type AxisNames, widest } from "./names";

export interface AxisLabel {
  readonly which: "query" | "key" | "title";
  readonly index: number; // −1: a title
  readonly text: string;
  readonly x: number;
  readonly y: number;
  readonly slanted: boolean;
  readonly align: "left" | "center" | "right";
  readonly room: number; // pixels that the text may take
  readonly color: string;
  readonly strong: boolean;
  readonly ground: boolean; // stands on a ground of its own, over what is there
}
export interface Tick {
  readonly x: number;
  readonly y: number;
  readonly across: boolean;
}
export interface Axes {
  readonly labels: readonly AxisLabel[];
  readonly ticks: readonly Tick[];
}
export interface Gutters {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
  readonly names: { readonly query: number; readonly key: number }; // room for a name
}

export const SLANT = Math.PI / 3;
const NAMED_FROM = 14; // pixels per token
const SOME_NAMED_FROM = 4; // with fewer, names would stand for too many others
const GAP = 6;

/** The room around a map while the names of its keys are shown (`named`), and while numbers stand in for them. */
export interface Rooms {
  readonly named: Gutters;
  readonly numbered: Gutters;
  readonly from: number; // pixels per token from which keys have names
}

export function roomsOf(
  queries: AxisNames, keys: AxisNames, width: number, height: number, measure: (text: string) => number, titles: number,
): Rooms {
  const query = Math.ceil(Math.max(titles, 44, widest(queries, measure, Math.max(64, Math.min(140, width * 0.2)))));
  const longest = widest(keys, measure, Math.max(40, Math.min(120, height * 0.26)));
  const left = query + 2 * GAP + 6, lean = Math.ceil(Math.max(12, longest * Math.cos(SLANT) - 4));
  const cell = Math.min(64, (width - left - 12) / keys.count, (height - 46) / queries.count);
  const flat = longest + 8 <= cell; // the names fit side by side
  const numbered = { left, top: 40, right: flat ? 12 : lean, bottom: 4, names: { query, key: longest } };
  return {
    numbered, named: flat ? numbered : { ...numbered, top: Math.ceil(Math.max(40, longest * Math.sin(SLANT) + 18)) },
    from: keys.known ? SOME_NAMED_FROM : NAMED_FROM,
  };
}

/** Which labels an axis has at so many pixels per token: each `step`th, and whether it is a name. */
function labelsAt(each: number, names: AxisNames, gap: number): { readonly step: number; readonly named: boolean } {
  if (each >= NAMED_FROM) return { step: 1, named: true };
  if (names.known && each >= SOME_NAMED_FROM) return { step: Math.ceil(NAMED_FROM / each), named: true };
  return { step: niceStep(gap / each), named: false };
}

/** A step of 1, 2 or 5 times a power of ten that is at least this. */
export function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= least - 1e-9)!;
}

interface AxesOptions {
  readonly camera: Camera;
  readonly shape: MapShape;
  readonly box: Box;
  readonly gutters: Gutters;
  readonly queries: AxisNames;
  readonly keys: AxisNames;
  readonly theme: Theme;
  readonly hover: Hover;
  readonly query: number | null;
  readonly key: number | null;
  readonly titles: { readonly queries: string; readonly keys: string };
  readonly measure: (text: string) => number;
}

/** Every label and tick of both axes, for the screen and for a figure alike. */
export function axesOf(look: AxesOptions): Axes {
  const { camera, shape, box, theme, gutters } = look;
  const part = visiblePart(camera, shape, box);
  const labels: AxisLabel[] = [], ticks: Tick[] = [];
  const down = camera.scale * camera.stretch, across = camera.scale;
  const edge = Math.max(box.x, xOf(camera, box, 0));
  const title = { which: "title", index: -1, slanted: false, room: 300, strong: false, ground: false } as const;
  const beside = { ...title, x: edge - 2 * GAP, align: "right" } as const;
  labels.push({ ...beside, text: look.titles.keys, y: box.y - 31, color: theme.key });
  labels.push({ ...beside, text: look.titles.queries, y: box.y - 15, color: theme.query });

  const inHand = (which: "query" | "key"): number[] =>
    [...new Set([look[which], look.hover[which]])].filter((i): i is number => i !== null && i >= 0);

  const rows = labelsAt(down, look.queries, 26), strongRows = inHand("query");
  const row = (i: number, strong: boolean, named: boolean): void => {
    const y = yOf(camera, box, i + 0.5), name = look.queries.at(i);
    if (y < box.y || y > box.y + box.height) return;
    const color = strong ? theme.query : !named || name.pale ? theme.pale : theme.query;
    labels.push({
      which: "query", index: i, text: named ? name.text : String(i), x: edge - GAP, y, slanted: false, align: "right",
      room: gutters.names.query, color, strong, ground: strong && rows.step > 1,
    });
    if (rows.step > 1) ticks.push({ x: edge, y, across: true });
  };
  for (let i = Math.ceil(Math.floor(part.top) / rows.step) * rows.step; i < part.bottom; i += rows.step)
    if (!strongRows.some((strong) => strong === i || (rows.step > 1 && Math.abs(strong - i) * down < 16)))
      row(i, false, rows.named);
  for (const i of strongRows) if (i < shape.queries) row(i, true, true);

  const columns = labelsAt(across, look.keys, look.measure(String(shape.keys)) + 18), strongColumns = inHand("key");
  const slant = columns.named && !fitsAcross(look, part.left, part.right);
  const column = (i: number, strong: boolean, named: boolean): void => {
    const x = xOf(camera, box, i + 0.5), name = look.keys.at(i);
    if (x < box.x || x > box.x + box.width) return;
    const color = strong ? theme.key : !named || name.pale ? theme.pale : theme.key;
    const slanted = named && slant, chip = strong && !columns.named;
    const room = chip || !named ? 160 : slanted ? gutters.names.key : Math.max(across - 4, gutters.names.key);
    labels.push({
      which: "key", index: i, text: named ? name.text : String(i), x: slanted ? x + 2 : x,
      y: box.y - (slanted ? 6 : 10),
      slanted, align: slanted ? "left" : "center", room, color, strong, ground: chip,
    });
    if (columns.step > 1) ticks.push({ x, y: box.y, across: false });
  };
  const covered = (strong: number, i: number): boolean => {
    if (columns.named) return Math.abs(strong - i) * across < NAMED_FROM;
    const widths = Math.min(160, look.measure(look.keys.at(strong).text)) + look.measure(String(i));
    return Math.abs(strong - i) * across < widths / 2 + 12;
  };
  for (let i = Math.ceil(Math.floor(part.left) / columns.step) * columns.step; i < part.right; i += columns.step)
    if (!strongColumns.some((strong) => strong === i || covered(strong, i))) column(i, false, columns.named);
  for (const i of strongColumns) if (i < shape.keys) column(i, true, true);
  return { labels, ticks };
}

/** Whether all visible names of keys fit side by side. */
function fitsAcross({ camera, keys, measure }: AxesOptions, left: number, right: number): boolean {
  if (camera.scale < 22) return false;
  for (let i = Math.floor(left); i < right; i++) if (measure(keys.at(i).text) + 8 > camera.scale) return false;
  return true;
}
