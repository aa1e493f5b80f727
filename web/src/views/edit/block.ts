/** A small map, or the strongest keys of a row; a click blocks that glance. */
import type { Selection } from "../../choose/choice";
import type { EditSpec } from "../../trace/messages";
import { ramp, scaleWeight } from "../../paint/color";
import { fewDigits } from "../../paint/digits";
import type { Theme } from "../../paint/theme";
import type { HeadAt, Row, Tile } from "../../trace/source";
import type { Scene } from "../parts/view";
import { h } from "../parts/element";
import { isBlocked } from "./edits";
import { nameOf } from "./words";

export const SMALL = 48; // queries or keys up to which the whole map is small enough to click in
const WIDEST = 284; // pixels

export interface Glance {
  readonly query: number;
  readonly key: number;
}

/** The whole map of one head on a canvas; `click` gets the cell under the pointer. */
export function blockMap(scene: Scene, click: (glance: Glance) => void) {
  const canvas = h("canvas", { class: "block-map" });
  canvas.setAttribute("aria-hidden", "true"); // the row beside it does the same by keyboard
  const hovered = h("p", { class: "pale told" });
  const box = h("div", {}, canvas, hovered);
  let at: HeadAt | null = null, tile: Tile | null = null, size = 8;
  const under = (event: PointerEvent | MouseEvent): Glance | null => {
    if (tile === null) return null;
    const key = Math.floor(event.offsetX / size), query = Math.floor(event.offsetY / size);
    return key >= 0 && query >= 0 && key < tile.columns && query < tile.rows ? { query, key } : null;
  };
  const tell = (glance: Glance | null): void => {
    hovered.textContent = "";
    if (glance === null || at === null || tile === null) return;
    const cell = glance.query * tile.columns + glance.key;
    const { info } = scene.source;
    const weight = tile.allowed[cell] === 0 ? scene.say("shell.blocked") : fewDigits(tile.max[cell]!);
    hovered.append(
      h("bdi", { class: "query" }, nameOf(info, at.layer, at.batch, "queries", glance.query)), " → ",
      h("bdi", { class: "key" }, nameOf(info, at.layer, at.batch, "keys", glance.key)), ` ${weight}`,
    );
  };
  canvas.addEventListener("pointermove", (event) => tell(under(event)));
  canvas.addEventListener("pointerleave", () => tell(null));
  canvas.addEventListener("click", (event) => {
    const glance = under(event);
    if (glance !== null && tile?.allowed[glance.query * tile.columns + glance.key] !== 0) click(glance);
  });
  const paint = (of: HeadAt, shown: Tile, edits: readonly EditSpec[], picked: Pair): void => {
    [at, tile] = [of, shown];
    size = Math.max(5, Math.min(22, Math.floor(WIDEST / Math.max(shown.rows, shown.columns))));
    paintCells(canvas, size, scene, of, shown, edits, picked);
  };
  return { box, paint };
}

type Pair = Pick<Selection, "query" | "key">;

/** Every cell of a small map, `size` pixels on a side; what is blocked is crossed out, what is picked has a frame. */
function paintCells(
  canvas: HTMLCanvasElement, size: number, scene: Scene, of: HeadAt, tile: Tile, edits: readonly EditSpec[],
  picked: Pair,
): void {
  const { rows, columns, max, allowed } = tile, ratio = globalThis.devicePixelRatio || 1, theme = scene.theme();
  canvas.width = Math.round(columns * size * ratio);
  canvas.height = Math.round(rows * size * ratio);
  canvas.style.width = `${columns * size}px`;
  canvas.style.height = `${rows * size}px`;
  const context = canvas.getContext("2d");
  if (!context) return;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const colours = ramp(theme.dark), { scale } = scene.choice.drawn.value;
  for (let query = 0; query < rows; query++)
    for (let key = 0; key < columns; key++) {
      const cell = query * columns + key, share = scaleWeight(max[cell]!, scale === "rank" ? "linear" : scale, 1);
      const at = 4 * Math.min(255, Math.round(255 * share)), isMasked = allowed[cell] === 0;
      context.fillStyle = isMasked ? theme.raised : `rgb(${colours[at]},${colours[at + 1]},${colours[at + 2]})`;
      context.fillRect(key * size, query * size, size - 1, size - 1);
      const isPicked = query === picked.query && key === picked.key;
      const isCut = isBlocked(edits, of.layer, of.head, query, key);
      markCell(context, key * size, query * size, size - 1, theme, { isMasked, isCut, isPicked });
    }
}

interface CellMarks {
  readonly isMasked: boolean;
  readonly isCut: boolean; // by an edit
  readonly isPicked: boolean;
}

function markCell(
  context: CanvasRenderingContext2D, x: number, y: number, side: number, theme: Theme,
  { isMasked, isCut, isPicked }: CellMarks,
): void {
  const stroke = (color: string, width: number): void => {
    context.strokeStyle = color;
    context.lineWidth = width;
  };
  const line = (from: number, to: number): void => { // from the left side to the right one
    context.beginPath();
    context.moveTo(x, y + from * side);
    context.lineTo(x + side, y + to * side);
    context.stroke();
  };
  stroke(theme.hatch, 1);
  if (isMasked) line(1, 0);
  stroke(theme.warn, 2);
  if (isCut) {
    line(0, 1);
    line(1, 0);
  }
  stroke(theme.focus, 2);
  if (isPicked) context.strokeRect(x, y, side, side);
}

/** The strongest keys of the picked query as buttons; pressed where they are blocked. */
export function blockRow(
  scene: Scene, of: HeadAt, query: number, keys: readonly { key: number; weight: number }[], row: Row,
  edits: readonly EditSpec[],
  click: (glance: Glance) => void,
): HTMLElement {
  const { info } = scene.source;
  const list = h("ul", { class: "block-row" });
  for (const { key } of keys) {
    const name = nameOf(info, of.layer, of.batch, "keys", key);
    const pressed = isBlocked(edits, of.layer, of.head, query, key);
    const cell = h("button", {}, h("bdi", { class: "key" }, name), ` ${fewDigits(row.weights[key]!)}`);
    cell.type = "button";
    cell.setAttribute("aria-pressed", String(pressed));
    const asker = nameOf(info, of.layer, of.batch, "queries", query);
    cell.setAttribute("aria-label", scene.say("edit.block.this", { query: asker, key: name }));
    cell.addEventListener("click", () => click({ query, key }));
    list.append(h("li", {}, cell));
  }
  return list;
}
