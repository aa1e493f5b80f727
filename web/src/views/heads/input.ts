/** Pointer and keys over the lines. */
import { hasModifier, pointerPlace, takeKey } from "../parts/dom";
import { tip } from "../parts/tip";
import type { HeadsView } from "./headsView";
import { type HeadsHit, stepQuery, stepKey, hitAt, pin } from "./pointer";
import { lineCard, tokenCard } from "./words";

/** Listens until the scene goes. */
export function listen(view: HeadsView): void {
  const { scroll, scene, frame } = view, { choice, say, signal } = scene, { canvas } = scroll.surface;
  const card = tip(frame.stage);
  const leave = (): void => {
    choice.point(null);
    card.hide();
  };
  const overNow = (x: number, y: number): HeadsHit | null => {
    const { painted } = view;
    return painted === null ? null : hitAt(painted.drawing.sight, painted.drawing.lines, painted.state.heads, x, y);
  };
  canvas.addEventListener("pointermove", (event) => {
    const { x, y } = pointerPlace(event, canvas), over = overNow(x, y), { painted } = view;
    if (over === null || painted === null) return;
    const { state, drawing } = painted, { layer } = state, { line } = over;
    const side = over.query !== null ? "query" : over.key !== null ? "key" : null;
    canvas.style.cursor = line !== null || side !== null ? "pointer" : "default";
    if (line !== null) {
      choice.point({ layer, query: line.query, key: line.key, head: line.head });
      card.show(x, y, lineCard(state, line, say));
    } else if (side !== null) {
      choice.point({ layer, [side]: over[side] });
      card.show(x, y, tokenCard(state, drawing.lines, side, over[side]!, say));
    } else leave();
  }, { signal });
  canvas.addEventListener("pointerleave", leave, { signal });
  canvas.addEventListener("click", (event) => {
    const { x, y } = pointerPlace(event, canvas), over = overNow(x, y);
    if (over !== null) pin(choice, over);
  }, { signal });
  scroll.box.addEventListener("keydown", (event) => {
    const next = hasModifier(event) ? null : stepByKey(view, event.key);
    if (next === null) return;
    takeKey(event);
    leave(); // the keyboard has taken over from the pointer
    choice.pick(next);
  }, { signal });
  scroll.onScroll(() => {
    leave(); // what was under the pointer is elsewhere now
    view.scrolled();
  });
}

/** What a key picks: another query, or another key of the query in hand; null where it means nothing here. */
function stepByKey(view: HeadsView, name: string): { query?: number; key: number | null } | null {
  if (view.painted === null) return null;
  const { state, drawing } = view.painted, { query, key } = state.pinned, [first, last] = view.visible();
  const next = stepQuery(name, query, state.queries.count, Math.max(1, last - first));
  if (next !== null) return { query: next, key: null };
  const own = drawing.lines.filter((line) => line.query === query).sort((a, b) => b.weight - a.weight);
  const nextKey = stepKey(name, key, own);
  return nextKey === null ? null : { key: nextKey };
}
