/** The pointer over a map: what it is over, told to all views, and a tooltip with exact numbers beside it. */
import type { Choice } from "../../choose/choice";
import type { Theme } from "../../paint/theme";
import type { Say } from "../../language/language";
import type { Hidden } from "../../trace/source";
import type { Head } from "./head";
import type { Hit } from "./hit";
import type { RowCache } from "./rows";
import type { MapTip } from "./tip";
import { type Pixel, tipText } from "./tipText";

const AFTER = 60; // milliseconds that the pointer rests before a row is asked for

export interface HoverContext {
  readonly choice: Choice;
  readonly say: Say;
  readonly theme: () => Theme;
  readonly rows: RowCache | null; // null: cells are no weights, so that a row says nothing of them
  readonly tip: MapTip;
  readonly head: () => Head | null;
  readonly hidden: () => Hidden | null;
  readonly hit: (x: number, y: number) => Hit | null;
  readonly pixel: (query: number, key: number) => Pixel | null;
}

export interface Hover {
  readonly over: (x: number, y: number) => Hit | null;
  readonly again: () => void; // the map moved or changed below the pointer
  readonly leave: () => void;
}

export function hoverOver(map: HoverContext): Hover {
  const { choice, rows, tip } = map;
  let pointed: { x: number; y: number; hit: Hit } | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const show = (): void => {
    const head = map.head();
    if (pointed === null || head === null) return;
    const { query, key } = pointed.hit, hidden = map.hidden(), both = query !== null && key !== null;
    const row = query === null || rows === null ? null : rows.peek(head, query);
    const text = tipText({
      hit: pointed.hit, queries: head.queries, keys: head.keys, row, pixel: both ? map.pixel(query, key) : null,
      pool: choice.drawn.peek().pool, difference: rows === null, say: map.say,
      padding: both && (hidden?.blind[query] === 1 || hidden?.unseen[key] === 1),
    });
    tip.show(text, pointed.x, pointed.y, map.theme());
    if (row !== null || !both || rows === null) return;
    clearTimeout(timer);
    timer = setTimeout(
      () => rows.get(head, query).then(() => pointed?.hit.query === query && show(), () => undefined), AFTER,
    );
  };
  const leave = (): void => {
    tip.hide();
    clearTimeout(timer);
    if (pointed !== null) choice.point(null);
    pointed = null;
  };
  const over = (x: number, y: number): Hit | null => {
    const hit = map.hit(x, y), head = map.head();
    if (hit === null || head === null) {
      leave();
      return null;
    }
    const before = choice.hover.peek();
    const fresh = pointed === null || before.query !== hit.query || before.key !== hit.key;
    pointed = { x, y, hit };
    if (fresh) choice.point({ ...hit, layer: head.layer, head: head.head });
    show();
    return hit;
  };
  return { over, leave, again: () => pointed !== null && over(pointed.x, pointed.y) };
}
