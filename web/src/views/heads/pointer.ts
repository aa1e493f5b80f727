/** Pointer and keyboard in the heads view: hovering previews, clicking pins, arrows move the query. */
import type { Choice } from "../../choose/choice";
import { along, aside, ending, HEADER, middle, type Sight, tokenUnder } from "./layout";
import type { Line } from "./lines";

const NEAR = 5; // pixels

/** The line that passes nearest to a point, strongest first among equals; null where none is near. */
export function lineAt(
  sight: Sight, lines: readonly Line[], heads: readonly number[], x: number, y: number,
): Line | null {
  if (x <= sight.left || x >= sight.right || y < HEADER) return null;
  const share = (x - sight.left) / (sight.right - sight.left);
  let best: Line | null = null, least = NEAR;
  for (const line of lines) {
    const curve = along(middle(sight, line.query), ending(sight, line.key).y, share) + aside(sight, heads, line.head);
    const off = Math.abs(curve - y);
    if (off < least || (off === least && best !== null && line.weight > best.weight)) [best, least] = [line, off];
  }
  return best;
}

export interface HeadsHit {
  readonly query: number | null;
  readonly key: number | null;
  readonly line: Line | null;
}

/** What a click pins; a second click on a token lets it go. */
export function pin(choice: Choice, over: HeadsHit): void {
  const { query, key } = choice.picked.value;
  if (over.line !== null) choice.pick({ query: over.line.query, key: over.line.key, head: over.line.head });
  else if (over.query !== null) choice.pick({ query: query === over.query ? null : over.query, key: null });
  else if (over.key !== null) choice.pick({ key: key === over.key ? null : over.key, query: null });
}

/** What is under a place of the canvas. */
export function hitAt(
  sight: Sight, lines: readonly Line[], heads: readonly number[], x: number, y: number,
): HeadsHit {
  const token = tokenUnder(sight, x, y);
  return { ...token, line: token.query === null && token.key === null ? lineAt(sight, lines, heads, x, y) : null };
}

/** The query after a key of the keyboard; null where it moves none. */
export function stepQuery(pressed: string, query: number | null, count: number, page: number): number | null {
  const from = query ?? -1;
  const steps: Readonly<Record<string, number>> = {
    ArrowDown: from + 1, ArrowUp: query === null ? count - 1 : from - 1,
    PageDown: from + page, PageUp: from - page, Home: 0, End: count - 1,
  };
  const next = steps[pressed];
  return next === undefined || count === 0 ? null : Math.max(0, Math.min(count - 1, next));
}

/** The key after ArrowRight (next weaker) or ArrowLeft (next stronger) among a query's lines, strongest first. */
export function stepKey(pressed: string, key: number | null, strongest: readonly Line[]): number | null {
  if ((pressed !== "ArrowRight" && pressed !== "ArrowLeft") || strongest.length === 0) return null;
  const now = strongest.findIndex((line) => line.key === key);
  const next = pressed === "ArrowRight" ? now + 1 : now - 1;
  return strongest[Math.max(0, Math.min(strongest.length - 1, next))]!.key;
}
