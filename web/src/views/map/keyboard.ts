/** Keys that move the selection over a map. */
import type { Zoom } from "../../choose/choice";
import type { MapShape } from "./geometry";

export interface Pair {
  readonly query: number | null;
  readonly key: number | null;
}

const within = (at: number, count: number): number => Math.min(Math.max(at, 0), count - 1);

/** The selection after a key; null where the key moves nothing. It starts at the corner of what is seen. */
export function stepSelection(name: string, shift: boolean, from: Pair, shape: MapShape, view: Zoom): Pair | null {
  const far = shift ? 10 : 1, page = Math.max(1, Math.floor(view.bottom - view.top) - 1);
  const move = (query: number, key: number): Pair => {
    const fresh = from.query === null && from.key === null;
    if (fresh)
      return { query: within(Math.ceil(view.top), shape.queries), key: within(Math.ceil(view.left), shape.keys) };
    const row = from.query === null && query === 0
      ? null
      : within((from.query ?? Math.ceil(view.top)) + query, shape.queries);
    const column = from.key === null && key === 0
      ? null
      : within((from.key ?? Math.ceil(view.left) - key) + key, shape.keys);
    return { query: row, key: column };
  };
  switch (name) {
    case "ArrowUp": return move(-far, 0);
    case "ArrowDown": return move(far, 0);
    case "ArrowLeft": return move(0, -far);
    case "ArrowRight": return move(0, far);
    case "PageUp": return move(-page, 0);
    case "PageDown": return move(page, 0);
    case "Home": return move(0, -shape.keys);
    case "End": return move(0, shape.keys);
    default: return null;
  }
}
