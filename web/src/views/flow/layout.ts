/** Where things stand in the flow view: lines of tokens, inputs above, the token in hand below; bars under them. */
import type { Size } from "../../paint/canvas";

export const BARS = 46; // of one row of bars
const BETWEEN = 22; // between lines and bars, and between source and target
const NARROWEST = 3, WIDEST = 96; // of one token
export const LONGEST = 92; // of a name
export const UPRIGHT = 46; // from this width on names stand level

export type PartName = "source" | "target";

/** A stretch of columns: the tokens of the source or of the target. */
export interface FlowPart {
  readonly name: PartName;
  readonly count: number;
  readonly start: number; // where its first column begins, in the whole
}

export interface Plan {
  readonly line: number; // pixels of one line of cells
  readonly name: number; // of a name that stands aslant, at most
  readonly column: number; // pixels of one token
  readonly left: number; // room for the names of lines
  readonly right: number; // room for the largest of each
  readonly top: number; // room for the names of tokens
  readonly lines: number;
  readonly parts: readonly FlowPart[];
  readonly bars: readonly [rollout: number, raw: number]; // where they begin
  readonly width: number; // of the whole
  readonly height: number;
}

/**
 * The plan for a window of this size; `zoom` 1 shows all tokens if they can be seen at all. `label` is the room of the
 * lines' names, `name` the width of the widest token.
 */
export function planOf(
  room: Size, lines: number, source: number, target: number, zoom: number, label: number, widest: number,
): Plan {
  const right = 62, gap = source > 0 ? BETWEEN : 0, count = Math.max(1, source + target);
  const fit = (room.width - label - right - gap - 8) / count;
  const column = Math.min(WIDEST, Math.max(NARROWEST, fit) * zoom);
  const name = Math.min(room.height < 420 ? 56 : LONGEST, widest);
  const top = (source > 0 ? 20 : 4) + (column >= UPRIGHT ? 26 : name * 0.87 + 22);
  const hitUnder = BETWEEN + 16 + 2 * BARS + 38;
  const line = Math.max(22, Math.min(40, Math.floor((room.height - top - hitUnder) / Math.max(1, lines))));
  const parts: FlowPart[] = [{ name: "target", count: target, start: label + source * column + gap }];
  if (source > 0) parts.unshift({ name: "source", count: source, start: label });
  const below = top + lines * line + BETWEEN + 16;
  const bars = [below, below + BARS + 26] as const;
  return {
    line, name, column, left: label, right, top, lines, parts, bars,
    width: label + count * column + gap + right + 8, height: bars[1] + BARS + 12,
  };
}

/** Where columns end in a window and the numbers at the end of lines begin. */
export const edgeOf = (plan: Plan, room: number): number => Math.min(room - plan.right, plan.width - plan.right - 8);

/** First and last column of a part of which something is seen between the names of lines and the numbers. */
export function visibleColumns(plan: Plan, part: FlowPart, scroll: number, room: number): readonly [number, number] {
  const first = Math.max(0, Math.floor((scroll + plan.left - part.start) / plan.column));
  return [first, Math.min(part.count, Math.ceil((scroll + edgeOf(plan, room) - part.start) / plan.column)) - 1];
}

/** Every how manieth name has room. */
export const everyName = (column: number): number => (column >= 15 ? 1 : 2 ** Math.ceil(Math.log2(15 / column)));

export interface FlowHit {
  readonly part: FlowPart;
  readonly token: number;
  readonly row: number | "rollout" | "raw" | "names"; // a line, bars, or the names above
}

/** What a point of the window is over. */
export function under(plan: Plan, x: number, y: number, left: number, top: number, room: number): FlowHit | null {
  if (x < plan.left || x > edgeOf(plan, room)) return null;
  const across = x + left, down = y + top;
  const part = plan.parts.find(({ start, count }) => across >= start && across < start + count * plan.column);
  if (part === undefined) return null;
  const token = Math.min(part.count - 1, Math.floor((across - part.start) / plan.column));
  if (y < plan.top) return { part, token, row: "names" };
  const line = Math.floor((down - plan.top) / plan.line);
  if (line >= 0 && line < plan.lines) return { part, token, row: line };
  if (down >= plan.bars[0] && down < plan.bars[0] + BARS) return { part, token, row: "rollout" };
  return down >= plan.bars[1] && down < plan.bars[1] + BARS ? { part, token, row: "raw" } : null;
}

/** Where to scroll so that a column is seen. */
export function scrollToToken(plan: Plan, part: FlowPart, token: number, scroll: number, room: number): number {
  const x = part.start + token * plan.column;
  const inside = x - scroll >= plan.left && x + plan.column - scroll <= edgeOf(plan, room);
  return inside ? scroll : Math.max(0, x - (room + plan.left - plan.right) / 2);
}
