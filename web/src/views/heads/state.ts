/** What the heads view shows for a choice: which layer and heads, which keys are left out, how many are asked. */
import type { Choice, Hover } from "../../choose/choice";
import type { Source } from "../../trace/source";
import { type TokenNames, layerTokenNames } from "../parts/names";
import type { WantedHead } from "./blocks";
import { shownHeads } from "./chips";
import { hiddenKeys, howMany } from "./lines";
import type { Lit } from "./paint";

export interface HeadsState {
  readonly layer: number;
  readonly batch: number;
  readonly queries: TokenNames;
  readonly keys: TokenNames;
  readonly headCount: number;
  readonly heads: readonly number[];
  readonly threshold: number;
  readonly without: readonly number[]; // keys that are left out now
  readonly sink: boolean; // whether hiding would leave out the first key, because no token is special
  readonly count: number; // keys asked per query
  readonly whole: boolean; // whether that is enough for the threshold
  readonly pinned: { readonly query: number | null; readonly key: number | null };
}

const within = (place: number | null, count: number): number | null => (place !== null && place < count ? place : null);

/** Gives the state of a choice; names are made once per layer. */
export function headsState(source: Source, choice: Choice, measure: (text: string) => number): () => HeadsState | null {
  let made: { at: string; queries: TokenNames; keys: TokenNames; hidden: readonly number[] } | null = null;
  return () => {
    const { layer: wanted, batch: entry, query, key } = choice.picked.value, { threshold, hide } = choice.drawn.value;
    const layer = Math.min(wanted, source.info.layers.length - 1), info = source.info.layers[layer];
    if (info === undefined) return null;
    const batch = Math.min(entry, info.shape[0] - 1), at = `${layer} ${batch}`;
    if (made?.at !== at) {
      const queries = layerTokenNames(source.info, layer, batch, "queries", measure);
      const keys = layerTokenNames(source.info, layer, batch, "keys", measure);
      made = { at, queries, keys, hidden: hiddenKeys(keys.count, keys.special) };
    }
    const { queries, keys, hidden } = made, without = hide ? hidden : [];
    return {
      layer, batch, queries, keys, headCount: info.shape[1], heads: shownHeads(choice.picked.value, info.shape[1]),
      threshold, without, sink: !keys.special(hidden[0] ?? 0), ...howMany(keys.count, threshold, without.length),
      pinned: { query: within(query, queries.count), key: within(key, keys.count) },
    };
  };
}

/** What to ask for these heads. */
export const wantedOf = (state: HeadsState): WantedHead[] =>
  state.heads.map((head) => ({
    at: { layer: state.layer, batch: state.batch, head }, queries: state.queries.count, keys: state.keys.count,
    count: state.count, without: state.without,
  }));

/** What stands out: what the pointer is over, else what is pinned; one head while the pointer is over it. */
export function litOf(state: HeadsState, hover: Hover): Lit {
  const over = hover.layer === null || hover.layer === state.layer;
  const pointed = over && (hover.query !== null || hover.key !== null);
  const { query, key } = pointed ? hover : state.pinned;
  return {
    query: within(query, state.queries.count), key: within(key, state.keys.count),
    head: over && hover.head !== null && state.heads.includes(hover.head) ? hover.head : null,
  };
}
