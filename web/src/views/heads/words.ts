/** What the heads view says in words. */
import type { Say } from "../../language/language";
import { type Block, type Line, meanHidden } from "./lines";
import type { Lit } from "./paint";
import type { HeadsState } from "./state";

const percent = (share: number): string => (share < 0.0995 ? (100 * share).toFixed(1) : (100 * share).toFixed(0));

const falling = (lines: readonly Line[]): Line[] => [...lines].sort((a, b) => b.weight - a.weight);

/** "猫 looks at cat 91 %, The 5 %": the strongest of one query in one head. */
export function sentence(state: HeadsState, lines: readonly Line[], query: number, head: number, say: Say): string {
  const own = falling(lines.filter((line) => line.query === query && line.head === head)).slice(0, 5);
  const name = state.queries.whole(query);
  if (own.length === 0) return say("heads.blind", { query: name, head, threshold: state.threshold });
  const list = own.map(({ key, weight }) =>
    say("heads.share", { token: state.keys.whole(key), share: percent(weight) }));
  return say("heads.looks", { query: name, head, list: list.join(say("heads.comma")) });
}

/** What must be said below the picture: what is seen, what was left out, and by which rule. */
export function notes(
  state: HeadsState, lines: readonly Line[], blocks: readonly Block[], range: readonly [number, number], lit: Lit, say: Say,
): string[] {
  const [first, last] = range, found: string[] = [];
  found.push(say("heads.range", { first, last, count: state.queries.count, lines: lines.length }));
  const one = lit.query !== null && lit.query >= first && lit.query <= last ? lit.query : null;
  const hidden = state.without.length === 0 ? null : meanHidden(blocks, one ?? first, one ?? last);
  if (hidden !== null)
    found.push(say(one !== null ? "heads.hidden" : "heads.hiddenMean", { share: percent(hidden) }));
  if (!state.whole) found.push(say("heads.most", { count: state.count - state.without.length }));
  return found;
}

/** The card for a token: what it is, and its strongest partners by head. */
export function tokenCard(
  state: HeadsState, lines: readonly Line[], side: "query" | "key", place: number, say: Say,
): string[] {
  const several = state.heads.length > 1;
  const [own, others] = side === "query" ? [state.queries, state.keys] : [state.keys, state.queries];
  const partner = (line: Line): number => (side === "query" ? line.key : line.query);
  const card = [`${own.whole(place)}  ·  ${say(side)} ${place}`];
  if (side === "key" && state.without.includes(place)) card.push(say("heads.out"));
  for (const head of state.heads.slice(0, 8)) {
    const best = falling(lines.filter((line) => line.head === head && line[side] === place)).slice(0, several ? 2 : 8);
    const list = best.map((line) => `${others.whole(partner(line))} ${line.weight.toFixed(3)}`);
    if (list.length > 0) card.push(...(several ? [`${say("head")} ${head}: ${list.join(", ")}`] : list));
  }
  return card;
}

/** The card for a line. */
export const lineCard = (state: HeadsState, line: Line, say: Say): string[] => [
  `${state.queries.whole(line.query)} → ${state.keys.whole(line.key)}`,
  `${say("head")} ${line.head}  ·  ${say("weight")} ${line.weight.toPrecision(4)}`,
];
