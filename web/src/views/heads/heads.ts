/** Heads as lines: queries left, keys right, each line the share that a query takes from a key, one colour per head. */
import { Blocks } from "./blocks";
import { chips } from "./chips";
import { figure } from "./figure";
import { columns, rowOf, seen, type Sight, tall, towards } from "./layout";
import { type Block, type Line, linesOf, strongest } from "./lines";
import { type Drawing, FONT, paintHeads } from "./paint";
import { moved, movedKey, type Over, overAt, pin } from "./pointer";
import { litOf, type State, stater, wantedOf } from "./state";
import { lineCard, notes, sentence, tokenCard } from "./words";
import { sentenceOf } from "../../language/errorText";
import { frame, perFrame, slider } from "../parts/dom";
import { made } from "../parts/element";
import { scroller } from "../parts/scroller";
import { tip } from "../parts/tip";
import type { View } from "../parts/view";

const WHILE_MOVING = 500; // lines; all of them are drawn when the scrolling rests
const REST = 120; // milliseconds

export const heads: View = ({ el, source, choice, say, theme, signal }) => {
  const { bar, stage, foot, live, alert, dress } = frame(el, signal);
  const room = scroller(stage, signal);
  const card = tip(stage);
  const measure = (text: string): number => {
    room.surface.context.font = FONT;
    return room.surface.context.measureText(text).width;
  };
  const stateNow = stater(source, choice, measure);
  const repaint = perFrame(() => paint(), signal);
  const blocks = new Blocks(source, repaint, signal);

  const picker = chips(choice, signal);
  const limit = slider(100, (share) => choice.draw({ threshold: Math.round(share * share * 1000) / 1000 }), signal);
  const limitWords = made("span");
  const limitValue = made("output", { minWidth: "42px", fontVariantNumeric: "tabular-nums" });
  const hide = made("input", { margin: "0 4px 0 0", accentColor: "var(--view-focus)" }), hideWords = made("span");
  hide.type = "checkbox";
  hide.addEventListener("change", () => choice.draw({ hide: hide.checked }), { signal });
  const line = { display: "inline-flex", alignItems: "center", gap: "6px" };
  const hiding = made("label", { ...line, gap: "0" }, hide, hideWords);
  bar.append(picker.el, made("label", line, limitWords, limit, limitValue), hiding);

  let now: { state: State; drawing: Drawing; said: string[] } | null = null;
  let said = "", moving = false, resting = 0;

  const sightOf = (state: State): Sight => {
    const { width, height } = room.surface.size();
    return {
      width, height, row: rowOf(height, Math.max(state.queries.count, state.keys.count)), scroll: room.top(),
      queries: state.queries.count, keys: state.keys.count,
      ...columns(width, state.queries.widest(width / 2), state.keys.widest(width / 2)),
    };
  };

  /** Lines of what is seen, from the blocks that are here; the rest is asked. */
  const lay = (state: State, sight: Sight): { lines: Line[]; here: Block[]; range: readonly [number, number] } => {
    const range = seen(sight, state.queries.count), without = new Set(state.without);
    const found = range[1] < 0 ? new Map<number, Block[]>() : blocks.of(wantedOf(state), ...range);
    const here = [...found.values()].flat();
    const lines = [...found].flatMap(([head, some]) =>
      some.flatMap((block) => linesOf(block, head, ...range, without, state.threshold)));
    return { lines, here, range };
  };

  const paint = (): void => {
    const state = stateNow();
    const colors = theme();
    dress(colors);
    if (state === null || state.queries.count === 0 || state.keys.count === 0) return alert(say("heads.empty"));
    const row = rowOf(room.surface.size().height, Math.max(state.queries.count, state.keys.count));
    room.extent(0, tall(row, state.queries.count, state.keys.count));
    const sight = sightOf(state);
    const { lines, here, range } = lay(state, sight);
    alert(blocks.error === null ? "" : sentenceOf(blocks.error));
    const lit = litOf(state, choice.hover.value);
    const drawing: Drawing = {
      sight, lines, heads: state.heads, lit, pinned: state.pinned, without: new Set(state.without),
      queries: state.queries, keys: state.keys, theme: colors, words: { queries: say("queries"), keys: say("keys") },
      strand: null,
    };
    const words = notes(state, lines, here, range, lit, say);
    now = { state, drawing, said: words };
    const nothing = blocks.busy ? say("heads.loading") : say("heads.none", { threshold: state.threshold });
    const strand = 1 / room.surface.ratio();
    const drawn = moving ? { ...drawing, lines: strongest(lines, WHILE_MOVING), strand } : drawing;
    paintHeads(room.surface.context, drawn, lines.length === 0 ? nothing : "");
    foot.replaceChildren(...[say("heads.read"), ...words].map((text) => made("span", {}, text)));
    const { query } = state.pinned, inHand = choice.picked.value.head;
    const head = state.heads.includes(inHand) ? inHand : state.heads[0]!;
    if (query !== null && query >= range[0] && query <= range[1] && !blocks.busy) {
      const sentenceNow = sentence(state, lines, query, head, say);
      if (sentenceNow !== said) live.textContent = said = sentenceNow;
    }
  };

  const controls = (): void => {
    const state = stateNow(), { threshold, hide: hidden } = choice.drawn.value;
    picker.show(state?.headCount ?? 0, choice.picked.value, theme(), say);
    limitWords.textContent = say("heads.threshold");
    limit.value = String(Math.round(Math.sqrt(threshold) * 100));
    limit.setAttribute("aria-valuetext", threshold.toFixed(3));
    limitValue.textContent = threshold.toFixed(3);
    hide.checked = hidden;
    hideWords.textContent = say(state?.sink ?? true ? "heads.hideFirst" : "heads.hideSpecial");
    room.box.setAttribute("role", "application");
    room.box.setAttribute("aria-label", say("heads.stage"));
  };

  let shownQuery: number | null = null;
  const follow = (): void => {
    const state = stateNow(), query = state?.pinned.query ?? null;
    if (state !== null && query !== null && query !== shownQuery && room.surface.size().height > 0)
      room.to(0, towards(sightOf(state), query));
    shownQuery = query;
  };

  const place = (event: PointerEvent | MouseEvent): { x: number; y: number } => {
    const box = room.surface.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const overNow = (x: number, y: number): Over | null =>
    (now === null ? null : overAt(now.drawing.sight, now.drawing.lines, now.state.heads, x, y));
  room.surface.canvas.addEventListener("pointermove", (event) => {
    const { x, y } = place(event), over = overNow(x, y);
    if (over === null || now === null) return;
    const { state, drawing } = now, own = { layer: state.layer };
    const onto = over.line !== null || over.query !== null || over.key !== null;
    room.surface.canvas.style.cursor = onto ? "pointer" : "default";
    if (over.line !== null) {
      choice.point({ ...own, query: over.line.query, key: over.line.key, head: over.line.head });
      card.show(x, y, lineCard(state, over.line, say));
    } else if (over.query !== null || over.key !== null) {
      const side = over.query !== null ? "query" : "key";
      choice.point({ ...own, [side]: over[side] });
      card.show(x, y, tokenCard(state, drawing.lines, side, over[side]!, say));
    } else leave();
  }, { signal });
  const leave = (): void => {
    choice.point(null);
    card.hide();
  };
  room.surface.canvas.addEventListener("pointerleave", leave, { signal });
  room.surface.canvas.addEventListener("click", (event) => {
    const { x, y } = place(event), over = overNow(x, y);
    if (over !== null) pin(choice, over);
  }, { signal });
  room.box.addEventListener("keydown", (event) => {
    if (now === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const { state, drawing } = now, { query, key } = state.pinned;
    const page = Math.max(1, seen(drawing.sight, state.queries.count)[1] - seen(drawing.sight, state.queries.count)[0]);
    const next = moved(event.key, query, state.queries.count, page);
    const own = drawing.lines.filter((found) => found.query === query).sort((a, b) => b.weight - a.weight);
    const nextKey = next === null ? movedKey(event.key, key, own) : null;
    if (next === null && nextKey === null) return;
    event.preventDefault();
    event.stopPropagation();
    leave(); // the keyboard has taken over from the pointer
    choice.pick(next !== null ? { query: next, key: null } : { key: nextKey });
  }, { signal });

  choice.watch(controls, signal);
  choice.watch(follow, signal);
  choice.watch(() => { // reads what painting reads, and paints once per frame
    void [choice.picked.value, choice.drawn.value, choice.hover.value, theme(), say("heads.read")];
    repaint();
  }, signal);
  room.onScroll(() => { // what was under the pointer is elsewhere now
    leave();
    moving = true;
    window.clearTimeout(resting);
    resting = window.setTimeout(() => {
      moving = false;
      repaint();
    }, REST);
    repaint();
  });
  signal.addEventListener("abort", () => window.clearTimeout(resting), { once: true });
  room.surface.onResize(() => {
    shownQuery = null;
    follow();
    paint();
  });

  const probe = {
    lines: (): Line[] => [...(now?.drawing.lines ?? [])],
    visible: (): readonly [number, number] =>
      (now === null ? [0, -1] : seen(now.drawing.sight, now.state.queries.count)),
  };
  Object.assign(el, { regard: probe });
  return {
    svg: async () => {
      paint();
      return now === null ? "" : figure(now.drawing, now.said, say("head"));
    },
    table: async () => {
      paint();
      const state = now?.state;
      return [
        ["query", "query token", "key", "key token", "head", "weight"],
        ...(now?.drawing.lines ?? []).map((found) => [
          found.query, state!.queries.raw(found.query), found.key, state!.keys.raw(found.key), found.head, found.weight,
        ]),
      ];
    },
    probe,
  };
};
