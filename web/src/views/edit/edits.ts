/** Lists of edits, never changed in place. */
import type { EditSpec } from "../../trace/messages";

const NOTHING = { query: null, key: null, factor: null } as const;

const sortedUnique = (heads: Iterable<number>): number[] => [...new Set(heads)].sort((a, b) => a - b);

/** The heads of a layer that are muted; all of them where the edit names none. */
export function mutedHeads(edits: readonly EditSpec[], layer: number, heads: number): ReadonlySet<number> {
  const mutes = edits.filter((edit) => edit.kind === "mute" && edit.layer === layer);
  return new Set(mutes.flatMap((edit) => edit.heads ?? Array.from({ length: heads }, (_, head) => head)));
}

/** The same edits with exactly these heads of a layer muted; one edit per layer, in the order of layers. */
export function withMuted(edits: readonly EditSpec[], layer: number, heads: Iterable<number>): EditSpec[] {
  const wanted = sortedUnique(heads);
  const others = edits.filter((edit) => !(edit.kind === "mute" && edit.layer === layer));
  if (wanted.length === 0) return others;
  const added = { kind: "mute", layer, heads: wanted, ...NOTHING } as const;
  const mutes = [...others.filter((edit) => edit.kind === "mute"), added];
  return [...mutes.sort((a, b) => a.layer - b.layer), ...others.filter((edit) => edit.kind !== "mute")];
}

/** Mutes a head, or lets it speak again. */
export function toggleHead(edits: readonly EditSpec[], layer: number, head: number, heads: number): EditSpec[] {
  const now = mutedHeads(edits, layer, heads);
  return withMuted(edits, layer, now.has(head) ? [...now].filter((one) => one !== head) : [...now, head]);
}

/** Mutes all heads of a layer, or lets them all speak again. */
export function toggleLayer(edits: readonly EditSpec[], layer: number, heads: number): EditSpec[] {
  const silent = mutedHeads(edits, layer, heads).size === heads;
  return withMuted(edits, layer, silent ? [] : Array.from({ length: heads }, (_, head) => head));
}

const sameHeads = (a: readonly number[] | null, b: readonly number[] | null): boolean =>
  a === b || (a !== null && b !== null && a.length === b.length && a.every((head, i) => head === b[i]));

/** Whether a head of a layer is kept from this glance. */
export const isBlocked = (edits: readonly EditSpec[], layer: number, head: number, query: number, key: number): boolean =>
  edits.some((edit) => edit.kind === "block" && edit.layer === layer && edit.query === query && edit.key === key &&
    (edit.heads === null || edit.heads.includes(head)));

/** Blocks a glance in these layers, or allows it again where the very same block stands already. */
export function toggleBlock(
  edits: readonly EditSpec[], layers: readonly number[], heads: readonly number[] | null, query: number, key: number,
): EditSpec[] {
  const same = (edit: EditSpec, layer: number): boolean =>
    edit.kind === "block" && edit.layer === layer && edit.query === query && edit.key === key &&
      sameHeads(edit.heads, heads);
  const standing = layers.every((layer) => edits.some((edit) => same(edit, layer)));
  const others = edits.filter((edit) => !layers.some((layer) => same(edit, layer)));
  return standing ? others
    : [...others, ...layers.map((layer) => ({ kind: "block", layer, heads, query, key, factor: null }) as const)];
}

/** Whether two lists are the same edits in the same order. */
export const sameEdits = (a: readonly EditSpec[], b: readonly EditSpec[]): boolean =>
  JSON.stringify(a) === JSON.stringify(b);

/** The layer to compare at: the one in hand if an edit can have changed its map, else the first whose map can have. */
export function firstChangedLayer(edits: readonly EditSpec[], layer: number, layers: number): number {
  // A muted head still looks where it looked: only what comes after it changes.
  const first = Math.min(...edits.map((edit) => edit.layer + (edit.kind === "block" ? 0 : 1)));
  return Number.isFinite(first) && layer < first ? Math.min(first, layers - 1) : layer;
}
