/** The visible part of a map as an SVG with real text: cells as squares where they are few, else as one picture. */
import { inkOn } from "../../paint/color";
import { HATCHES, type HatchKind, hatchFill, hatchSvg } from "../../paint/hatch";
import { type Markup, label, node, svgDocument } from "../../paint/svg";
import type { Say } from "../../language/language";
import { type Axes, type AxisLabel } from "./axes";
import { colourOf, shade, valuesOf } from "./colours";
import { cellText } from "./describe";
import { type PlacedTile, type MapFrame, pictureOf, runs } from "./cells";
import { GRID_FROM, NUMBERS_FROM } from "./draw";
import { visiblePart, xOf, yOf } from "./geometry";
import { labelSvg, tickSvg } from "./labels";
import { BAR, type LegendFacts, hatchWords, marks, sentences } from "./legend";
import type { AxisNames } from "./names";
import { TILE } from "../../trace/source";

const MOST_SQUARES = 64; // on a side

export interface FigureOf {
  readonly frame: MapFrame;
  readonly tiles: readonly PlacedTile[];
  readonly axes: Axes;
  readonly names: (of: AxisLabel) => AxisNames | null;
  readonly facts: LegendFacts;
  readonly title: string;
  readonly notes: readonly string[];
  readonly width: number;
  readonly height: number;
  readonly measure: (text: string) => number;
  readonly say: Say;
}

let made = 0; // figures may stand in one file: each has names of its own inside

/** The figure as text. */
export function figure(of: FigureOf): string {
  const part = `map-part-${++made}`, scale = `map-scale-${made}`;
  const { frame, axes, facts, say, measure } = of;
  const { theme, camera, shape, box } = frame;
  const words = [...sentences(facts, say), ...of.notes];
  const below = of.height + 8, lines = words.length + Math.ceil(facts.hatches.length);
  const height = below + 44 + 18 * lines, shift = 26;
  const view = visiblePart(camera, shape, box);
  const x = xOf(camera, box, view.left), y = yOf(camera, box, view.top);
  const size = { width: xOf(camera, box, view.right) - x, height: yOf(camera, box, view.bottom) - y };
  return svgDocument(of.width, height + shift, [
    ...HATCHES.map((kind) => hatchSvg(kind, theme)),
    node("defs", {}, node("clipPath", { id: part }, node("rect", { x, y, ...size }))),
    node("rect", { width: of.width, height: height + shift, fill: theme.ground }),
    label(12, 20, of.title, { fill: theme.ink, "font-weight": 600, "font-size": 13 }),
    node(
      "g",
      { transform: `translate(0 ${shift})` },
      node("g", { "clip-path": `url(#${part})` }, ...hatchRects(frame), ...cells(of), ...picks(frame)),
      node("rect", { x, y, ...size, fill: "none", stroke: theme.line }),
      ...axes.ticks.map((tick) => tickSvg(tick, theme)),
      ...axes.labels.map((one) => labelSvg(one, of.names(one), theme, measure)),
      node(
        "g", { transform: `translate(24 ${below})` }, ...bar(facts, theme.pale, scale),
        ...keys(words, facts.hatches, say, theme.pale),
      ),
    ),
  ]);
}

function hatchRects(frame: MapFrame): Markup[] {
  const { camera, shape, box, hidden } = frame;
  const view = visiblePart(camera, shape, box);
  const rect = (kind: HatchKind, left: number, right: number, top: number, bottom: number): Markup =>
    node("rect", {
      x: xOf(camera, box, left), y: yOf(camera, box, top), width: (right - left) * camera.scale,
      height: (bottom - top) * camera.scale * camera.stretch, fill: hatchFill(kind),
    });
  const out = [rect("blocked", view.left, view.right, view.top, view.bottom)];
  if (hidden === null) return out;
  for (const [left, right] of runs(hidden.unseen, view.left, view.right))
    out.push(rect("padding", left, right, view.top, view.bottom));
  for (const [top, bottom] of runs(hidden.blind, view.top, view.bottom))
    out.push(rect("padding", view.left, view.right, top, bottom));
  return out;
}

/** The visible cells of a tile, as first row, end row, first column, end column within it. */
function within(
  { held, part }: PlacedTile, frame: MapFrame,
): { top: number; bottom: number; left: number; right: number } {
  const view = visiblePart(frame.camera, frame.shape, frame.box), size = 2 ** held.at.level;
  const row = held.at.row * TILE, column = held.at.column * TILE;
  return {
    top: Math.floor(Math.max(part.top, view.top) / size) - row,
    left: Math.floor(Math.max(part.left, view.left) / size) - column,
    bottom: Math.min(held.tile.rows, Math.ceil(Math.min(part.bottom, view.bottom) / size) - row),
    right: Math.min(held.tile.columns, Math.ceil(Math.min(part.right, view.right) / size) - column),
  };
}

function cells(of: FigureOf): Markup[] {
  const { frame, tiles } = of;
  const { camera, shape, box } = frame;
  const view = visiblePart(camera, shape, box), size = 2 ** frame.level;
  const few = (view.right - view.left) / size <= MOST_SQUARES && (view.bottom - view.top) / size <= MOST_SQUARES;
  return few ? tiles.flatMap((one) => squares(one, of)) : picture(tiles, frame);
}

function squares(one: PlacedTile, { frame, measure }: FigureOf): Markup[] {
  const { camera, box, by } = frame, { held } = one, size = 2 ** held.at.level;
  const values = valuesOf(held.tile, by.pool), { top, bottom, left, right } = within(one, frame), out: Markup[] = [];
  const width = size * camera.scale, height = width * camera.stretch;
  for (let row = top; row < bottom; row++)
    for (let column = left; column < right; column++) {
      const at = row * held.tile.columns + column;
      if (held.tile.allowed[at] === 0) continue;
      const x = xOf(camera, box, (held.at.column * TILE + column) * size);
      const y = yOf(camera, box, (held.at.row * TILE + row) * size);
      const stroke = width < GRID_FROM ? null : frame.theme.ground;
      out.push(node("rect", { x, y, width, height, fill: colourOf(values[at]!, by), stroke }));
      if (camera.scale < NUMBERS_FROM || held.at.level !== 0) continue;
      const shown = 4 * shade(values[at]!, by);
      const fill = inkOn(by.bytes[shown]!, by.bytes[shown + 1]!, by.bytes[shown + 2]!);
      const place = { fill, "text-anchor": "middle", "dominant-baseline": "central" };
      out.push(label(x + width / 2, y + height / 2, cellText(values[at]!, width, measure), place));
    }
  return out;
}

/** All cells as one picture, so that no seam shows between tiles. */
function picture(tiles: readonly PlacedTile[], frame: MapFrame): Markup[] {
  const { camera, shape, box } = frame, size = 2 ** frame.level, view = visiblePart(camera, shape, box);
  const left = Math.floor(view.left / size), top = Math.floor(view.top / size);
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(view.right / size) - left;
  canvas.height = Math.ceil(view.bottom / size) - top;
  const pen = canvas.getContext("2d");
  if (pen === null) return [];
  pen.imageSmoothingEnabled = false;
  for (const one of tiles) {
    const from = pictureOf(one.held, frame.by), part = within(one, frame), width = part.right - part.left;
    const height = part.bottom - part.top;
    if (from === null || width <= 0 || height <= 0) continue;
    const larger = 2 ** (one.held.at.level - frame.level); // more than 1 where a coarser tile stands in
    const x = (one.held.at.column * TILE + part.left) * larger - left;
    const y = (one.held.at.row * TILE + part.top) * larger - top;
    pen.drawImage(from, part.left, part.top, width, height, x, y, width * larger, height * larger);
  }
  return [
    node("image", {
      x: xOf(camera, box, left * size), y: yOf(camera, box, top * size), width: canvas.width * size * camera.scale,
      height: canvas.height * size * camera.scale * camera.stretch, preserveAspectRatio: "none",
      "image-rendering": "pixelated",
      href: canvas.toDataURL("image/png"),
    }),
  ];
}

function picks({ camera, shape, box, theme, query, key }: MapFrame): Markup[] {
  const line = { fill: "none", "stroke-width": 2 };
  const all = {
    x: xOf(camera, box, 0), y: yOf(camera, box, 0), width: shape.keys * camera.scale,
    height: shape.queries * camera.scale * camera.stretch,
  };
  const row = { ...all, y: yOf(camera, box, query ?? 0), height: camera.scale * camera.stretch };
  const column = { ...all, x: xOf(camera, box, key ?? 0), width: camera.scale };
  return [
    ...(query === null ? [] : [node("rect", { ...row, ...line, stroke: theme.query })]),
    ...(key === null ? [] : [node("rect", { ...column, ...line, stroke: theme.key })]),
  ];
}

function bar({ by }: LegendFacts, ink: string, id: string): Markup[] {
  const stops = Array.from({ length: 33 }, (_, i) => {
    const at = 4 * Math.round((255 * i) / 32);
    return node("stop", {
      offset: i / 32, "stop-color": `rgb(${by.bytes[at]}, ${by.bytes[at + 1]}, ${by.bytes[at + 2]})`,
    });
  });
  return [
    node("defs", {}, node("linearGradient", { id }, ...stops)),
    node("rect", { ...BAR, fill: `url(#${id})` }),
    ...marks(by).map(
      ({ at, text }) => label(at * BAR.width, BAR.height + 14, text, { "text-anchor": "middle", fill: ink })
    ),
  ];
}

function keys(words: readonly string[], hatches: readonly HatchKind[], say: Say, ink: string): Markup[] {
  const first = BAR.height + 38;
  return [
    ...words.map((text, i) => label(0, first + 18 * i, text, { fill: ink })),
    ...hatches.flatMap((kind, i) => {
      const y = first + 18 * (words.length + i);
      return [
        node("rect", { y: y - 11, width: 24, height: 14, fill: hatchFill(kind) }),
        label(32, y, hatchWords(kind, say), { fill: ink }),
      ];
    }),
  ];
}
