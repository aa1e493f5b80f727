/** One frame of the map: the cells, then grid, numbers, pins and the cross under the pointer. */
import { inkOn } from "../../paint/color";
import { TILE } from "../../trace/source";
import { type PlacedTile, type MapFrame, drawCells } from "./cells";
import { shade, valuesOf } from "./colours";
import { cellText } from "./describe";
import { visiblePart, xOf, yOf } from "./geometry";
import { fontOf } from "./names";

export const GRID_FROM = 12; // pixels of a cell
export const NUMBERS_FROM = 34;

/** All that lies inside the axes. `missing`: some tiles have nothing to stand in for them. */
export function drawMap(
  context: CanvasRenderingContext2D, frame: MapFrame, tiles: readonly PlacedTile[], missing: boolean,
  measure: (text: string) => number,
): void {
  const { camera, shape, box, theme } = frame, view = visiblePart(camera, shape, box);
  const x = xOf(camera, box, view.left), y = yOf(camera, box, view.top);
  const width = xOf(camera, box, view.right) - x, height = yOf(camera, box, view.bottom) - y;
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  drawCells(context, frame, tiles, missing);
  drawGrid(context, frame);
  drawNumbers(context, frame, tiles, measure);
  drawPicks(context, frame);
  context.restore();
  context.strokeStyle = theme.line;
  context.lineWidth = 1;
  context.strokeRect(x - 0.5, y - 0.5, width + 1, height + 1);
}

/** Lines between cells that are large enough to be told apart. */
function drawGrid(context: CanvasRenderingContext2D, { camera, shape, box, theme, ratio }: MapFrame): void {
  if (camera.scale * Math.min(1, camera.stretch) < GRID_FROM) return;
  const { left, right, top, bottom } = visiblePart(camera, shape, box);
  const snap = (x: number): number => Math.round(x * ratio) / ratio; // whole pixels are sharp and quick
  const x0 = xOf(camera, box, left), y0 = yOf(camera, box, top);
  const width = xOf(camera, box, right) - x0, height = yOf(camera, box, bottom) - y0;
  context.fillStyle = theme.ground;
  for (let key = Math.ceil(left); key <= right; key++)
    context.fillRect(snap(xOf(camera, box, key) - 0.5), y0, 1, height);
  for (let query = Math.ceil(top); query <= bottom; query++)
    context.fillRect(x0, snap(yOf(camera, box, query) - 0.5), width, 1);
}

/** Calls `each` with every visible cell of the tiles of level 0 and its value. */
function eachCell(
  frame: MapFrame, tiles: readonly PlacedTile[], each: (query: number, key: number, value: number) => void,
): void {
  const view = visiblePart(frame.camera, frame.shape, frame.box);
  for (const { held } of tiles) {
    if (held.at.level !== 0) continue;
    const { row, column } = held.at, values = valuesOf(held.tile, frame.by.pool);
    const bottom = Math.min(row * TILE + held.tile.rows, view.bottom);
    const right = Math.min(column * TILE + held.tile.columns, view.right);
    for (let query = Math.max(row * TILE, Math.floor(view.top)); query < bottom; query++)
      for (let key = Math.max(column * TILE, Math.floor(view.left)); key < right; key++) {
        const at = (query - row * TILE) * held.tile.columns + key - column * TILE;
        if (held.tile.allowed[at] !== 0) each(query, key, values[at]!);
      }
  }
}

/** The number in each cell, where there is room. */
function drawNumbers(
  context: CanvasRenderingContext2D, frame: MapFrame, tiles: readonly PlacedTile[], measure: (text: string) => number,
): void {
  const { camera, box, by } = frame, high = camera.scale * camera.stretch;
  if (camera.scale < NUMBERS_FROM || high < 16 || frame.level !== 0) return;
  context.font = fontOf();
  context.textAlign = "center";
  context.textBaseline = "middle";
  eachCell(frame, tiles, (query, key, value) => {
    const text = cellText(value, camera.scale, measure), at = 4 * shade(value, by);
    context.fillStyle = inkOn(by.bytes[at]!, by.bytes[at + 1]!, by.bytes[at + 2]!);
    context.fillText(text, xOf(camera, box, key + 0.5), yOf(camera, box, query + 0.5) + 0.5);
  });
}

/** The pinned row and column, and a cross where the pointer is. */
function drawPicks(
  context: CanvasRenderingContext2D, { camera, shape, box, theme, hover, query, key }: MapFrame,
): void {
  const { left, right, top, bottom } = visiblePart(camera, shape, box);
  const x0 = xOf(camera, box, left), x1 = xOf(camera, box, right), y0 = yOf(camera, box, top);
  const y1 = yOf(camera, box, bottom);
  const band = (at: number | null, down: boolean, color: string, wide: number): void => {
    if (at === null || at < 0 || at >= (down ? shape.keys : shape.queries)) return;
    const [from, to] = down
      ? [xOf(camera, box, at), xOf(camera, box, at + 1)]
      : [yOf(camera, box, at), yOf(camera, box, at + 1)];
    const middle = (from + to) / 2, half = Math.max((to - from) / 2, 1.5);
    context.strokeStyle = color;
    context.lineWidth = wide;
    if (down) context.strokeRect(middle - half, y0, 2 * half, y1 - y0);
    else context.strokeRect(x0, middle - half, x1 - x0, 2 * half);
  };
  if (hover.query !== query) band(hover.query, false, theme.query, 1);
  if (hover.key !== key) band(hover.key, true, theme.key, 1);
  band(query, false, theme.query, 2);
  band(key, true, theme.key, 2);
  if (query === null || key === null || query >= shape.queries || key >= shape.keys) return;
  const x = xOf(camera, box, key), y = yOf(camera, box, query);
  const width = Math.max(camera.scale, 5), height = Math.max(camera.scale * camera.stretch, 5);
  context.strokeStyle = theme.ground;
  context.lineWidth = 5;
  context.strokeRect(x - 1, y - 1, width + 2, height + 2);
  context.strokeStyle = theme.focus;
  context.lineWidth = 3;
  context.strokeRect(x - 1, y - 1, width + 2, height + 2);
}
