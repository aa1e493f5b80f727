/** A small map, or the strongest keys of a row; a click blocks that glance. */
import type { Selection } from "../../choose/choice";
import type { EditSpec } from "../../trace/messages";
import { ramp, scaleWeight } from "../../paint/color";
import { fewDigits } from "../../paint/digits";
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
  const paint = (of: HeadAt, found: Tile, edits: readonly EditSpec[], picked: Pick<Selection, "query" | "key">): void => {
    [at, tile] = [of, found];
    const { rows, columns, max, allowed } = found;
    size = Math.max(5, Math.min(22, Math.floor(WIDEST / Math.max(rows, columns))));
    const ratio = globalThis.devicePixelRatio || 1, theme = scene.theme();
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
        const cell = query * columns + key, x = key * size, y = query * size;
        const colour = 4 * Math.min(255, Math.round(255 * scaleWeight(max[cell]!, scale === "rank" ? "linear" : scale, 1)));
        context.fillStyle = allowed[cell] === 0 ? theme.raised
          : `rgb(${colours[colour]},${colours[colour + 1]},${colours[colour + 2]})`;
        context.fillRect(x, y, size - 1, size - 1);
        const line = (fx: number, fy: number, tx: number, ty: number): void => {
          context.beginPath();
          context.moveTo(x + fx * (size - 1), y + fy * (size - 1));
          context.lineTo(x + tx * (size - 1), y + ty * (size - 1));
          context.stroke();
        };
        context.lineWidth = 1;
        context.strokeStyle = theme.hatch;
        if (allowed[cell] === 0) line(0, 1, 1, 0);
        if (isBlocked(edits, of.layer, of.head, query, key)) {
          context.lineWidth = 2;
          context.strokeStyle = theme.warn;
          line(0, 0, 1, 1);
          line(0, 1, 1, 0);
        }
        if (query === picked.query && key === picked.key) {
          context.lineWidth = 2;
          context.strokeStyle = theme.focus;
          context.strokeRect(x, y, size - 1, size - 1);
        }
      }
  };
  return { box, paint };
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
