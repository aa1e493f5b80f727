/** Where the patches of a picture stand among the tokens. Pure. */
import { type TraceInfo, tokensOf, type Tokens } from "../../trace/source";

export interface PatchGrid {
  readonly rows: number;
  readonly columns: number;
  readonly places: Int32Array; // the token of each patch, row by row
  readonly patchOf: ReadonlyMap<number, number>; // the patch of a token
}

/**
 * The grid of these tokens: all that are not special where they are as many as patches, else the last rows × columns.
 * Null where there is no grid, or fewer tokens than patches.
 */
export function gridOf(tokens: Tokens | null, count: number): PatchGrid | null {
  if (!tokens?.grid) return null;
  const [rows, columns] = tokens.grid;
  const patches = rows * columns;
  if (patches <= 0 || patches > count) return null;
  const plain = tokens.special?.flatMap((special, place) => (special || place >= count ? [] : [place])) ?? [];
  const places = plain.length === patches ? Int32Array.from(plain) : Int32Array.from(
    { length: patches }, (_, i) => count - patches + i,
  );
  return { rows, columns, places, patchOf: new Map(Array.from(places, (place, patch) => [place, patch])) };
}

/** How a layer and a picture belong together. */
export interface Reading {
  readonly by: "row" | "column"; // keys are patches: a row is drawn; only queries are: a column is
  readonly grid: PatchGrid; // what is painted
  readonly asks: PatchGrid | null; // the queries, where they are patches of the same picture too
  readonly chips: readonly number[]; // tokens outside the picture that can be chosen
  readonly first: number; // what is chosen when nobody chose
}

/** Whether a layer's maps are of parts of the picture; the watch found out by their sizes and notes it like this. */
export const isWindowed = (info: TraceInfo, layer: number): boolean =>
  info.layers[layer]?.states.includes("parts_of_picture") ?? false;

/** Whether the image view has something to draw, or to say why it draws nothing. */
export const hasPatches = (info: TraceInfo): boolean =>
  info.picture !== null || info.tokens.some((tokens) => tokens.grid !== null)
  || info.layers.some((_, layer) => isWindowed(info, layer));

/** Which side of the layer is a picture; null where neither is, or where it is only a window of it. */
export function readingOf(info: TraceInfo, layer: number, batch: number): Reading | null {
  const shape = info.layers[layer]?.shape;
  if (!shape || isWindowed(info, layer)) return null;
  const queries = tokensOf(info, layer, batch, "queries"), keys = tokensOf(info, layer, batch, "keys");
  const asks = gridOf(queries, shape[2]), grid = gridOf(keys, shape[3]);
  const outside = (of: PatchGrid | null, count: number): number[] =>
    Array.from({ length: count }, (_, place) => place).filter((place) => !of?.patchOf.has(place));
  if (grid) {
    const chips = outside(asks, shape[2]);
    const middle = asks ? asks.places[(asks.rows >> 1) * asks.columns + (asks.columns >> 1)]! : shape[2] - 1;
    return { by: "row", grid, asks, chips, first: asks && chips.length > 0 ? chips[0]! : middle };
  }
  if (!asks) return null;
  return { by: "column", grid: asks, asks: null, chips: outside(null, shape[3]), first: 0 };
}

/** Whether all layers have the tokens of this one, so that rollout goes from its patches to those of the picture. */
export function canRollOut(info: TraceInfo, layer: number): boolean {
  const count = info.layers[layer]?.shape[3];
  return info.layers.length > 1
    && info.layers.every(({ shape }, at) => shape[2] === count && shape[3] === count && !isWindowed(info, at));
}

export interface PictureFrame {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Where `count` pictures of this form stand in a room, as large as fits, with `gap` between them. */
export function framesIn(
  room: { width: number; height: number }, form: { width: number; height: number }, count: number, gap: number,
): PictureFrame[] {
  const tall = count > 1 && room.height > room.width; // one above the other
  const across = tall ? 1 : count, down = tall ? count : 1;
  const scale = Math.max(
    0,
    Math.min(
      (room.width - gap * (across - 1)) / (across * form.width),
      (room.height - gap * (down - 1)) / (down * form.height),
    ),
  );
  const width = form.width * scale, height = form.height * scale;
  const left = (
    room.width - across * width - gap * (across - 1)
  ) / 2, top = (room.height - down * height - gap * (down - 1)) / 2;
  return Array.from(
    { length: count },
    (_, i) => ({ x: left + (tall ? 0 : i * (width + gap)), y: top + (tall ? i * (height + gap) : 0), width, height }),
  );
}

/** The place of a patch within a frame. */
export const patchFrame = (frame: PictureFrame, grid: PatchGrid, patch: number): PictureFrame => {
  const width = frame.width / grid.columns, height = frame.height / grid.rows;
  return {
    x: frame.x + (patch % grid.columns) * width, y: frame.y + Math.floor(patch / grid.columns) * height, width, height,
  };
};

/** The patch under a point, −1 where there is none. */
export function patchAt(frames: readonly PictureFrame[], grid: PatchGrid, x: number, y: number): number {
  for (const frame of frames) {
    const column = Math.floor(((x - frame.x) / frame.width) * grid.columns);
    const row = Math.floor(((y - frame.y) / frame.height) * grid.rows);
    if (column >= 0 && column < grid.columns && row >= 0 && row < grid.rows) return row * grid.columns + column;
  }
  return -1;
}
