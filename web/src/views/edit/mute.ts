/** Layers × heads; a click mutes. */
import type { EditSpec } from "../../trace/messages";
import type { Say } from "../../language/language";
import type { TraceInfo } from "../../trace/source";
import { h } from "../parts/element";
import { button } from "./dom";
import { mutedHeads, toggleHead, toggleLayer } from "./edits";

/** The grid of heads, and what marks the muted ones and the one in hand. */
export function muteGrid(
  info: TraceInfo, layers: () => readonly number[], say: Say,
  change: (how: (edits: readonly EditSpec[]) => EditSpec[]) => void,
) {
  const grid = h("div", { class: "mutes" });
  const cells = new Map<string, HTMLButtonElement>();
  let shown = "";
  const fill = (): void => {
    const wanted = layers();
    if (wanted.join() === shown) return;
    shown = wanted.join();
    cells.clear();
    grid.replaceChildren(...wanted.map((layer) => {
      const heads = info.layers[layer]!.shape[1];
      const row = h("div", { class: "mute-row" });
      const all = button(String(layer), () => change((edits) => toggleLayer(edits, layer, heads)), "quiet number");
      all.title = `${say("edit.mute.layer", { layer })}\n${info.layers[layer]!.name.slice(0, 200)}`;
      all.setAttribute("aria-label", say("edit.mute.layer", { layer }));
      row.append(all, ...Array.from({ length: heads }, (_, head) => {
        const cell = button(String(head), () => change((edits) => toggleHead(edits, layer, head, heads)), "mute");
        cell.setAttribute("aria-label", say("edit.mute.head", { layer, head }));
        cell.title = say("edit.mute.head", { layer, head });
        cells.set(`${layer} ${head}`, cell);
        return cell;
      }));
      return row;
    }));
  };
  const mark = (edits: readonly EditSpec[], layer: number, head: number): void => {
    fill();
    for (const one of layers()) {
      const heads = info.layers[one]!.shape[1], muted = mutedHeads(edits, one, heads);
      for (let at = 0; at < heads; at++) {
        const cell = cells.get(`${one} ${at}`)!;
        cell.setAttribute("aria-pressed", String(muted.has(at)));
        cell.classList.toggle("here", one === layer && at === head);
      }
    }
  };
  return { grid, mark };
}
