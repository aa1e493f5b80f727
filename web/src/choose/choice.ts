/** What is picked, once for all views: layer, head, query, key, zoom, and how it is drawn. The address holds it. */
import { type Signal, effect, signal } from "@preact/signals";

export const VIEWS = ["map", "heads", "model", "numbers", "flow", "edit", "compare", "image", "training", "readings"] as const;
export type ViewName = (typeof VIEWS)[number];

/** Part of the map that is seen, in weights (not pixels): queries from `top` to `bottom`, keys from `left` to `right`. */
export interface Zoom {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** A head of the trace that stands beside the one that is looked at. */
export interface BesideHead {
  readonly layer: number;
  readonly head: number;
}

export interface Selection {
  readonly view: ViewName;
  readonly layer: number;
  readonly head: number;
  readonly heads: readonly number[]; // the heads view shows several; empty: the one in hand
  readonly batch: number;
  readonly query: number | null;
  readonly key: number | null;
  readonly zoom: Zoom | null; // null: all of it
  readonly beside: BesideHead | null; // where two models are shown side by side; null: the same layer and head
}

export interface DrawSettings {
  readonly scale: "linear" | "log" | "rank";
  readonly pool: "max" | "mean";
  readonly threshold: number; // lines below this weight are not drawn
  readonly hide: boolean; // special tokens and the sink are left out and the rest is renormalised
  readonly sort: string; // a measure; "" for the model's own order
  readonly falling: boolean; // the largest first; else the smallest
  readonly residual: number; // the flow view: which share of a token stays where it is, in every layer
  readonly by: "weights" | "values"; // and what the rest is shared by
  readonly near: number; // and how much wider than its window it is drawn
}

export const MOST_RESIDUAL = 0.9, NEAREST = 64;

/** What the pointer is over; never in the address. */
export interface Hover {
  readonly layer: number | null;
  readonly head: number | null;
  readonly query: number | null;
  readonly key: number | null;
}

export const NOTHING: Hover = { layer: null, head: null, query: null, key: null };
export const FIRST: Selection = {
  view: "map", layer: 0, head: 0, heads: [], batch: 0, query: null, key: null, zoom: null, beside: null,
};
export const PLAIN: DrawSettings = {
  scale: "linear", pool: "max", threshold: 0.05, hide: false, sort: "", falling: true, residual: 0.5, by: "weights",
  near: 1,
};

export class Choice {
  readonly picked: Signal<Selection>;
  readonly drawn: Signal<DrawSettings>;
  readonly hover: Signal<Hover> = signal(NOTHING);

  constructor(picked: Selection = FIRST, drawn: DrawSettings = PLAIN) {
    this.picked = signal(picked);
    this.drawn = signal(drawn);
  }

  pick(part: Partial<Selection>): void {
    this.picked.value = { ...this.picked.value, ...part };
  }

  draw(part: Partial<DrawSettings>): void {
    this.drawn.value = { ...this.drawn.value, ...part };
  }

  point(part: Partial<Hover> | null): void {
    this.hover.value = part === null ? NOTHING : { ...NOTHING, ...part };
  }

  /** Calls `look` now and whenever a signal that it read changes, until `until` fires. */
  watch(look: () => void, until: AbortSignal): void {
    if (until.aborted) return;
    until.addEventListener("abort", effect(look), { once: true });
  }
}
