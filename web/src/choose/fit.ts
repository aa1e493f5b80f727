/** Keeps what is picked inside the trace that is looked at: an address or a view may ask for what is not there. */
import type { TraceInfo } from "../trace/source";
import type { BesideHead, Selection, Zoom } from "./choice";

const whole = (value: number): number => (Number.isFinite(value) ? Math.trunc(value) : 0);
const within = (value: number, size: number): number => Math.min(Math.max(0, whole(value)), Math.max(0, size - 1));
const place = (value: number | null, size: number): number | null =>
  value === null || !Number.isInteger(value) || value < 0 || value >= size ? null : value;

/** The part of a zoom that lies on a map of q × k weights; null where nothing or all of it does. */
export function fitZoom(zoom: Zoom | null, queries: number, keys: number): Zoom | null {
  if (zoom === null || ![zoom.left, zoom.top, zoom.right, zoom.bottom].every(Number.isFinite)) return null;
  const left = Math.max(0, zoom.left), right = Math.min(keys, zoom.right);
  const top = Math.max(0, zoom.top), bottom = Math.min(queries, zoom.bottom);
  if (right - left < 1e-6 || bottom - top < 1e-6) return null;
  if (left === 0 && top === 0 && right === keys && bottom === queries) return null;
  return { left, top, right, bottom };
}

const sameZoom = (a: Zoom | null, b: Zoom | null): boolean =>
  a === b ||
    (a !== null && b !== null && a.left === b.left && a.top === b.top && a.right === b.right && a.bottom === b.bottom);
const sameHeads = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((x, i) => x === b[i]);

const sameBeside = (a: BesideHead | null, b: BesideHead | null): boolean =>
  a === b || (a !== null && b !== null && a.layer === b.layer && a.head === b.head);

/** Whether two selections are the same in every part. */
export const samePicked = (a: Selection, b: Selection): boolean =>
  a.view === b.view && a.layer === b.layer && a.head === b.head && a.batch === b.batch && a.query === b.query &&
  a.key === b.key && sameHeads(a.heads, b.heads) && sameZoom(a.zoom, b.zoom) && sameBeside(a.beside, b.beside);

/** The layer to begin with: the last cross-attention, where a translation shows what each word came from. */
export const mostTellingLayer = (info: TraceInfo): number =>
  Math.max(0, info.layers.findLastIndex(({ kind }) => kind === "cross"));

/** The nearest selection that the trace has; the very same object where nothing had to give way. */
export function fit(picked: Selection, info: TraceInfo): Selection {
  const layer = within(picked.layer, info.layers.length);
  const shape = info.layers[layer]?.shape ?? [1, 1, 0, 0];
  const [batches, heads, queries, keys] = shape;
  const fitted: Selection = {
    view: picked.view, layer, head: within(picked.head, heads), batch: within(picked.batch, batches),
    heads: [...new Set(picked.heads)].filter((head) => Number.isInteger(head) && head >= 0 && head < heads),
    query: place(picked.query, queries), key: place(picked.key, keys), zoom: fitZoom(picked.zoom, queries, keys),
    beside: picked.beside, // of another trace, whose view keeps it inside
  };
  return samePicked(fitted, picked) ? picked : fitted;
}

/**
 * What stays picked when the layer changes: query, key and zoom only while they still mean the same tokens (the third
 * token of the source is not the third of the translation).
 */
export function carry(picked: Selection, before: Selection, info: TraceInfo): Selection {
  const was = info.layers[before.layer], is = info.layers[picked.layer];
  if (was === undefined || is === undefined || was === is) return fit(picked, info);
  const same = (which: "queries" | "keys"): boolean => {
    const a = was[which]?.[before.batch], b = is[which]?.[picked.batch];
    return a === b && was.shape[which === "queries" ? 2 : 3] === is.shape[which === "queries" ? 2 : 3];
  };
  const rows = same("queries"), columns = same("keys");
  return fit({
    ...picked,
    query: rows || picked.query !== before.query ? picked.query : null,
    key: columns || picked.key !== before.key ? picked.key : null,
    zoom: (rows && columns) || picked.zoom !== before.zoom ? picked.zoom : null,
  }, info);
}
