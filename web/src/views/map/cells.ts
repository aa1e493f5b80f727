/** The cells of a map on a canvas: hatches below, the pictures of tiles over them. */
import { type HatchKind, hatch } from "../../paint/hatch";
import type { Theme } from "../../paint/theme";
import type { Hover, Zoom } from "../../choose/choice";
import { type Hidden, TILE, type TileAt } from "../../trace/source";
import { type Colouring, pixels } from "./colours";
import { type Box, type Camera, type MapShape, visiblePart, xOf, yOf } from "./geometry";
import type { LoadedTile } from "./tiles";

export interface MapFrame {
  readonly camera: Camera;
  readonly shape: MapShape;
  readonly box: Box;
  readonly theme: Theme;
  readonly ratio: number;
  readonly level: number;
  readonly by: Colouring;
  readonly hidden: Hidden | null;
  readonly hover: Hover;
  readonly query: number | null;
  readonly key: number | null;
}

/** A tile, and the part of the map for which it stands in. */
export interface PlacedTile {
  readonly held: LoadedTile;
  readonly part: Zoom;
}

/** The picture of a tile, one pixel per cell, painted again only when its colours changed. */
export function pictureOf(held: LoadedTile, by: Colouring): CanvasImageSource | null {
  if (held.paintedAs === by.name) return held.picture;
  const canvas = document.createElement("canvas");
  canvas.width = held.tile.columns;
  canvas.height = held.tile.rows;
  const pen = canvas.getContext("2d");
  if (pen !== null) pen.putImageData(new ImageData(pixels(held.tile, by), held.tile.columns, held.tile.rows), 0, 0);
  held.picture = pen === null ? null : canvas;
  held.paintedAs = by.name;
  return held.picture;
}

/** For each tile that should be seen: itself, or the part of a coarser one that stands in for it. */
export function tilesToDraw(
  wanted: readonly TileAt[], get: (at: TileAt) => LoadedTile | undefined, topmost: number, shape: MapShape,
): PlacedTile[] {
  const out: PlacedTile[] = [];
  for (const at of wanted) {
    const side = TILE * 2 ** at.level;
    const part = {
      left: at.column * side, top: at.row * side,
      right: Math.min(shape.keys, (at.column + 1) * side), bottom: Math.min(shape.queries, (at.row + 1) * side),
    };
    for (let level = at.level; level <= Math.max(topmost, at.level); level++) {
      const by = level - at.level;
      const held = get({ ...at, level, row: at.row >> by, column: at.column >> by });
      if (held === undefined) continue;
      out.push({ held, part });
      break;
    }
  }
  return out;
}

/** Runs of ones, as [first, end). */
export function runs(flags: Uint8Array, from: number, to: number): [number, number][] {
  const out: [number, number][] = [];
  for (let i = Math.max(0, Math.floor(from)); i < Math.min(flags.length, to); i++) {
    if (flags[i] === 0) continue;
    const last = out[out.length - 1];
    if (last !== undefined && last[1] === i) last[1] = i + 1;
    else out.push([i, i + 1]);
  }
  return out;
}

const HATCH_SIDE = 8;
type Hatches = Readonly<Record<HatchKind, CanvasPattern>>;
const hatchesByTheme = new WeakMap<Theme, { readonly ratio: number; readonly of: Hatches }>();

/** The hatches of a theme, made once per sharpness. */
function hatchesOf(
  context: CanvasRenderingContext2D, theme: Theme, ratio: number,
): Hatches {
  const known = hatchesByTheme.get(theme);
  if (known?.ratio === ratio) return known.of;
  const of = {
    blocked: hatch(context, theme, "blocked"), padding: hatch(context, theme, "padding"),
    unknown: hatch(context, theme, "unknown"),
  };
  hatchesByTheme.set(theme, { ratio, of });
  return of;
}

const both = (a: Zoom, b: Zoom): Zoom => ({
  left: Math.max(a.left, b.left), top: Math.max(a.top, b.top), right: Math.min(a.right, b.right),
  bottom: Math.min(a.bottom, b.bottom),
});

/** Whether a tile holds cells that may not be looked at and are no padding. */
export function hasBlocked(held: LoadedTile, hidden: Hidden | null): boolean {
  if (held.open || hidden === null) return !held.open;
  if (held.blockedBy?.hidden === hidden) return held.blockedBy.any;
  const { at, tile } = held, size = 2 ** at.level;
  const any = tile.allowed.some((share, i) => {
    const query = (at.row * TILE + Math.floor(i / tile.columns)) * size;
    const key = (at.column * TILE + (i % tile.columns)) * size;
    return share === 0 && hidden.blind[query] !== 1 && hidden.unseen[key] !== 1;
  });
  held.blockedBy = { hidden, any };
  return any;
}

/** Paints the cells. `missing`: some tiles have nothing to stand in for them. */
export function drawCells(
  context: CanvasRenderingContext2D, frame: MapFrame, tiles: readonly PlacedTile[], missing: boolean,
): void {
  const { camera, shape, box, theme, ratio, hidden } = frame;
  const view = visiblePart(camera, shape, box);
  const snap = (x: number): number => Math.round(x * ratio) / ratio;
  const hatches = hatchesOf(context, theme, ratio);
  const shift = {
    x: snap(xOf(camera, box, 0) % HATCH_SIDE), y: snap(yOf(camera, box, 0) % HATCH_SIDE),
  }; // hatches move with the map
  const fill = (kind: HatchKind, part: Zoom): void => {
    if (part.right <= part.left || part.bottom <= part.top) return;
    const x = snap(xOf(camera, box, part.left)) - shift.x, y = snap(yOf(camera, box, part.top)) - shift.y;
    context.fillStyle = hatches[kind];
    context.translate(shift.x, shift.y);
    context.fillRect(
      x, y, snap(xOf(camera, box, part.right)) - shift.x - x, snap(yOf(camera, box, part.bottom)) - shift.y - y,
    );
    context.translate(-shift.x, -shift.y);
  };
  if (missing) fill("unknown", view);
  context.imageSmoothingEnabled = false;
  for (const { held, part } of tiles) {
    const now = both(view, part);
    if (now.right <= now.left || now.bottom <= now.top) continue;
    if (!held.open) {
      fill("blocked", now);
      if (hidden !== null) {
        for (const [left, right] of runs(hidden.unseen, now.left, now.right))
          fill("padding", both(now, { ...now, left, right }));
        for (const [top, bottom] of runs(hidden.blind, now.top, now.bottom))
          fill("padding", both(now, { ...now, top, bottom }));
      }
    }
    const picture = pictureOf(held, frame.by);
    if (picture === null) continue;
    // Whole cells that touch the visible part; what hangs over is cut by the clip around the box.
    const size = 2 ** held.at.level, column0 = held.at.column * TILE, row0 = held.at.row * TILE;
    const first = { column: Math.floor(now.left / size), row: Math.floor(now.top / size) };
    const columns = Math.min(held.tile.columns, Math.ceil(now.right / size) - column0) - (first.column - column0);
    const rows = Math.min(held.tile.rows, Math.ceil(now.bottom / size) - row0) - (first.row - row0);
    if (columns <= 0 || rows <= 0) continue;
    const end = {
      right: Math.min(shape.keys, (first.column + columns) * size),
      bottom: Math.min(shape.queries, (first.row + rows) * size),
    };
    const x = snap(xOf(camera, box, first.column * size)), y = snap(yOf(camera, box, first.row * size));
    const width = snap(xOf(camera, box, end.right)) - x, height = snap(yOf(camera, box, end.bottom)) - y;
    // The last cell of an edge may stand for fewer weights than the others; it is then drawn as wide as they are.
    const whole = {
      width: width * ((columns * size) / (end.right - first.column * size)),
      height: height * ((rows * size) / (end.bottom - first.row * size)),
    };
    context.drawImage(
      picture, first.column - column0, first.row - row0, columns, rows, x, y, whole.width, whole.height,
    );
  }
}
