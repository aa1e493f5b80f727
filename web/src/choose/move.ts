/** Steps through a trace: to the next cell, head or layer, nearer and further. Each gives what is to be picked. */
import type { LayerInfo, TraceInfo } from "../trace/source";
import type { Selection, Zoom } from "./choice";
import { fitZoom } from "./fit";

const clamp = (value: number, size: number): number => Math.min(Math.max(0, value), Math.max(0, size - 1));

/** Which attention a layer is, "self", "self·encoder", "cross", …; layers of one are looked at together. */
export const attentionOf = (layer: LayerInfo): string =>
  (layer.side === "" || layer.kind === "cross" ? layer.kind : `${layer.kind}·${layer.side}`);

/** The numbers of all layers of the same attention as this one. */
export const sameAttention = (info: TraceInfo, layer: number): number[] => {
  const wanted = info.layers[layer];
  if (wanted === undefined) return [];
  return info.layers.flatMap((other, i) => (attentionOf(other) === attentionOf(wanted) ? [i] : []));
};

/** A zoom moved just so far that the place is in it. */
function around(zoom: Zoom, query: number | null, key: number | null): Zoom {
  const shift = (place: number | null, first: number, last: number): number =>
    place === null ? 0 : place < first ? place - first : place + 1 > last ? place + 1 - last : 0;
  const dx = shift(key, zoom.left, zoom.right), dy = shift(query, zoom.top, zoom.bottom);
  return dx === 0 && dy === 0 ? zoom
    : { left: zoom.left + dx, right: zoom.right + dx, top: zoom.top + dy, bottom: zoom.bottom + dy };
}

/** The cell so many queries down and keys to the right; the first visible one where none is picked yet. */
export function step(picked: Selection, info: TraceInfo, down: number, right: number): Partial<Selection> {
  const shape = info.layers[picked.layer]?.shape;
  if (shape === undefined || shape[2] === 0 || shape[3] === 0) return {};
  const first = { query: Math.ceil(picked.zoom?.top ?? 0), key: Math.ceil(picked.zoom?.left ?? 0) };
  const query = down !== 0 || picked.query === null
    ? clamp(picked.query === null ? first.query : picked.query + down, shape[2]) : picked.query;
  const key = right !== 0 ? clamp(picked.key === null ? first.key : picked.key + right, shape[3]) : picked.key;
  return { query, key, zoom: picked.zoom && fitZoom(around(picked.zoom, query, key), shape[2], shape[3]) };
}

/** The head so many further; it stays in its layer. */
export const stepHead = (picked: Selection, info: TraceInfo, by: number): Partial<Selection> =>
  ({ head: clamp(picked.head + by, info.layers[picked.layer]?.shape[1] ?? 1), heads: [] });

/** The layer so many further among those of the same attention. */
export function stepLayer(picked: Selection, info: TraceInfo, by: number): Partial<Selection> {
  const layers = sameAttention(info, picked.layer);
  const at = layers.indexOf(picked.layer);
  return { layer: layers[clamp(at + by, layers.length)] ?? picked.layer };
}

/** Nearer by this factor (further below 1), around what is picked if it is in sight, else around the middle. */
export function zoomBy(picked: Selection, info: TraceInfo, factor: number): Partial<Selection> {
  const shape = info.layers[picked.layer]?.shape;
  if (shape === undefined) return {};
  const [, , queries, keys] = shape;
  const now = picked.zoom ?? { left: 0, top: 0, right: keys, bottom: queries };
  const part = (place: number | null, first: number, last: number, size: number): readonly [number, number] => {
    const seen = place !== null && place >= first && place < last;
    const middle = seen ? place + 0.5 : (first + last) / 2;
    const width = Math.min(size, Math.max(Math.min(2, size), (last - first) / factor));
    const start = middle - ((middle - first) / (last - first)) * width;
    const whole = seen ? Math.min(Math.max(start, place + 1 - width), place) : start; // the picked cell stays whole
    const inside = Math.min(Math.max(0, whole), size - width);
    return [inside, inside + width];
  };
  const [left, right] = part(picked.key, now.left, now.right, keys);
  const [top, bottom] = part(picked.query, now.top, now.bottom, queries);
  return { zoom: fitZoom({ left, top, right, bottom }, queries, keys) };
}
