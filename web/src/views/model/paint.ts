/** The model view on a canvas: pictures of heads, the names of layers, the numbers of heads. */
import type { Scale } from "../../paint/color";
import { clipText } from "../../paint/text";
import type { Theme } from "../../paint/theme";
import type { LayerInfo } from "../../trace/source";
import { FAMILY } from "../parts/dom";
import { boxOf } from "./boxes";
import { type At, corner, type HeadGrid, headAt, HEADER, visibleRows } from "./layout";
import type { RowImages } from "./rows";

export const FONT = `12px ${FAMILY}`;

export interface ModelDrawing {
  readonly grid: HeadGrid;
  readonly width: number;
  readonly height: number;
  readonly ratio: number; // screen pixels per CSS pixel
  readonly left: number; // scrolled
  readonly top: number;
  readonly layers: readonly LayerInfo[];
  readonly labels: readonly (readonly [name: string, kind: string])[];
  readonly value: (at: At) => string; // below a sorted head
  readonly picked: At;
  readonly hover: At | null;
  readonly scale: Scale;
  readonly theme: Theme;
  readonly headWord: string;
}

/** Every how manieth head number has room. */
export const everyHead = (cell: number): number => (cell >= 22 ? 1 : 4);

type Window = Pick<ModelDrawing, "grid" | "width" | "height" | "left" | "top">;
export interface Cell {
  readonly at: At;
  readonly x: number;
  readonly y: number;
}

/** All heads that are seen, with the corner of their cell in the window. */
export function* visibleCells({ grid, width, height, left, top }: Window): Generator<Cell> {
  const [first, last] = visibleRows(grid, top, height);
  const from = Math.max(0, Math.floor((left - 8) / grid.cell));
  const to = Math.min(grid.columns - 1, Math.ceil((left + width - grid.left) / grid.cell));
  for (let row = first; row <= last; row++)
    for (let column = from; column <= to; column++) {
      const at = headAt(grid, row, column), place = corner(grid, row, column);
      if (at !== null) yield { at, x: place.x - left, y: place.y - top };
    }
}

const same = (a: At | null, b: At): boolean => a !== null && a.layer === b.layer && a.head === b.head;

/** An outline around a head: waiting, hovered or picked. */
function outline(
  pen: CanvasRenderingContext2D, drawing: ModelDrawing, { at, x, y }: Cell, color: string, width: number,
): void {
  const [, , queries, keys] = drawing.layers[at.layer]!.shape, box = boxOf(drawing.grid.cell, queries, keys);
  pen.strokeStyle = color;
  pen.lineWidth = width;
  pen.strokeRect(x + box.x - 0.5, y + box.y - 0.5, box.width + 1, box.height + 1);
}

function paintValue(pen: CanvasRenderingContext2D, { grid, theme, value }: ModelDrawing, { at, x, y }: Cell): void {
  pen.textAlign = "center";
  pen.fillStyle = theme.ink;
  pen.fillText(value(at), x + grid.cell / 2, y + grid.cell + 6);
  pen.fillStyle = theme.pale;
  pen.fillText(`${at.layer}·${at.head}`, x + grid.cell / 2, y + grid.cell + 20);
}

/** Whole layers at once where they stand in rows, head by head where they are sorted. */
function paintHeads(pen: CanvasRenderingContext2D, drawing: ModelDrawing, rows: RowImages): void {
  const { grid, theme, height, left, top, ratio, scale } = drawing;
  const look = { cell: grid.cell, ratio, scale, theme }, side = Math.round(grid.cell * ratio);
  const marked: [Cell, string, number][] = [];
  const [first, last] = visibleRows(grid, top, height);
  for (let layer = first; !grid.sorted && layer <= last; layer++) {
    const row = rows.of(layer, look), { x, y } = corner(grid, layer, 0);
    if (row !== null) pen.drawImage(row, x - left, y - top, row.width / ratio, grid.cell);
  }
  for (const cell of visibleCells(drawing)) {
    const row = rows.of(cell.at.layer, look);
    if (row === null) outline(pen, drawing, cell, theme.line, 1); // until it comes
    else if (grid.sorted) pen.drawImage(row, cell.at.head * side, 0, side, side, cell.x, cell.y, grid.cell, grid.cell);
    if (grid.sorted) paintValue(pen, drawing, cell);
    if (same(drawing.picked, cell.at)) marked.push([cell, theme.focus, 3]);
    else if (same(drawing.hover, cell.at)) marked.push([cell, theme.ink, 2]);
  }
  for (const [cell, color, width] of marked) outline(pen, drawing, cell, color, width);
}

function paintLabels(pen: CanvasRenderingContext2D, drawing: ModelDrawing): void {
  const { grid, width, height, left, top, theme, labels } = drawing;
  const measure = (text: string): number => pen.measureText(text).width;
  pen.fillStyle = theme.ground;
  pen.fillRect(0, 0, grid.left - 1, height);
  pen.fillRect(0, 0, width, HEADER - 1);
  const [first, last] = visibleRows(grid, top, height);
  pen.save();
  pen.beginPath();
  pen.rect(0, HEADER, grid.left, height - HEADER);
  pen.clip();
  pen.textAlign = "right";
  for (let row = first; row <= last; row++) {
    const y = corner(grid, row, 0).y - top + grid.cell / 2, [name, kind] = labels[row] ?? ["", ""];
    const two = kind !== "" && grid.cell >= 34;
    pen.fillStyle = theme.ink;
    pen.fillText(clipText(name, grid.left - 14, measure), grid.left - 7, two ? y - 7 : y);
    pen.fillStyle = theme.pale;
    if (two) pen.fillText(clipText(kind, grid.left - 14, measure), grid.left - 7, y + 8);
  }
  pen.restore();
  pen.save();
  pen.beginPath();
  pen.rect(grid.left, 0, width, HEADER);
  pen.clip();
  pen.textAlign = "center";
  pen.fillStyle = theme.pale;
  for (let head = 0; head < grid.columns; head += everyHead(grid.cell))
    pen.fillText(String(head), corner(grid, 0, head).x - left + grid.cell / 2, HEADER / 2);
  pen.restore();
  pen.textAlign = "right";
  pen.fillStyle = theme.pale;
  pen.fillText(clipText(drawing.headWord, grid.left - 10, measure), grid.left - 7, HEADER / 2);
}

/** Paints all that is seen. */
export function paintModel(pen: CanvasRenderingContext2D, drawing: ModelDrawing, rows: RowImages): void {
  pen.fillStyle = drawing.theme.ground;
  pen.fillRect(0, 0, drawing.width, drawing.height);
  pen.font = FONT;
  pen.textBaseline = "middle";
  pen.imageSmoothingEnabled = false;
  paintHeads(pen, drawing, rows);
  if (!drawing.grid.sorted) paintLabels(pen, drawing);
}
