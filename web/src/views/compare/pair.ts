/** Whether two traces can be laid beside each other at a layer and head; these match by their number. */
import type { Selection } from "../../choose/choice";
import type { Say } from "../../language/language";
import { type TraceInfo, tokensOf } from "../../trace/source";

export interface Pair {
  readonly exists: boolean; // B has this layer, batch entry and head
  readonly shape: readonly [queries: number, keys: number] | null; // where both have the same
  readonly names: { readonly a: string; readonly b: string } | null; // of the layer, where they differ
  readonly tokens: boolean; // the tokens differ
  readonly why: (say: Say) => string; // why there is no B, or no difference
}

export function pairOf(
  a: TraceInfo, b: TraceInfo, { layer, head, batch }: Pick<Selection, "layer" | "head" | "batch">,
): Pair {
  const one = a.layers[layer], two = b.layers[layer];
  const both = one !== undefined && two !== undefined;
  const there = both && head < Math.min(one.shape[1], two.shape[1]) && batch < Math.min(one.shape[0], two.shape[0]);
  const same = there && one.shape[2] === two.shape[2] && one.shape[3] === two.shape[3];
  const differ = (which: "queries" | "keys"): boolean => {
    const mine = tokensOf(a, layer, batch, which)?.shown, theirs = tokensOf(b, layer, batch, which)?.shown;
    return mine !== undefined && theirs !== undefined && mine !== theirs && mine.some((text, i) => text !== theirs[i]);
  };
  return {
    exists: there,
    shape: same ? [one.shape[2], one.shape[3]] : null,
    names: there && one.name !== two.name ? { a: one.name, b: two.name } : null,
    tokens: same && (differ("queries") || differ("keys")),
    why: (say) =>
      there
        ? say("compare.shapes", { aq: one.shape[2], ak: one.shape[3], bq: two.shape[2], bk: two.shape[3] })
        : say("compare.layers", { layer, head }),
  };
}
