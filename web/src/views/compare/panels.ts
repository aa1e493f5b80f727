/** The maps of A and B and of their difference, side by side with one selection. */
import { type Signal, computed, signal as live } from "@preact/signals";
import { Choice } from "../../choose/choice";
import { shortenText } from "../../paint/text";
import type { HeadAt, Source } from "../../trace/source";
import { type MapExports, type PanelOptions, mapPanel } from "../map/panel";
import { h } from "../parts/element";
import { largestWeight } from "../parts/largestWeight";
import type { Scene } from "../parts/view";
import { type Difference, differenceOf } from "./difference";
import { type Pair, pairOf } from "./pair";

export type Side = "a" | "b" | "difference";
export const SIDES: readonly Side[] = ["a", "b", "difference"];

export class Panels {
  readonly element = h("div", { class: "panels" });
  readonly top: Signal<number | null> = live(null); // the end of the colour scale of both maps
  difference: Difference | null = null; // null where the two do not have the same shape
  private shown: Partial<Record<Side, MapExports>> = {};
  private stop: AbortController | null = null;
  private builtFor = "";

  constructor(private readonly scene: Scene, private readonly other: Source) {
    scene.signal.addEventListener("abort", () => this.stop?.abort(), { once: true });
  }

  /** How the picked layers of A and B go together. */
  pair(): Pair {
    return pairOf(this.scene.source.info, this.other.info, this.scene.choice.picked.peek());
  }

  /** New panels where need be: another layer may have another shape, or be missing in B. */
  update(): void {
    const { layer, batch } = this.scene.choice.picked.peek(), pair = this.pair();
    const name = [layer, batch, pair.exists, pair.shape?.join()].join(" ");
    if (name === this.builtFor) return;
    this.builtFor = name;
    this.build(pair);
  }

  private build(pair: Pair): void {
    const { source, choice, say } = this.scene, { other, element } = this;
    this.stop?.abort();
    this.stop = new AbortController();
    this.shown = {};
    element.replaceChildren();
    const shared = { top: () => this.top.value };
    this.put("a", source, shared);
    if (pair.exists) this.put("b", other, shared);
    else element.append(h("div", { class: "panel" }, h("p", { class: "message", role: "status" }, pair.why(say))));
    this.difference = pair.shape ? differenceOf(source, other, pair.shape) : null;
    if (!this.difference) return;
    const by = this.difference.exact ? choice : withMeans(choice);
    this.put("difference", other, { tiles: this.difference.tile, diverging: true }, by);
  }

  private put(side: Side, source: Source, options: PanelOptions, choice: Choice = this.scene.choice): void {
    const { say } = this.scene, isDifference = side === "difference";
    const el = h("div", { class: isDifference ? "panel wide" : "panel", "data-side": side });
    this.element.append(el);
    const name = shortenText(source.info.name || source.info.model, 60);
    const title = isDifference ? say("compare.difference") : `${side.toUpperCase()} · ${name}`;
    this.shown[side] = mapPanel({ ...this.scene, source, choice, signal: this.stop!.signal }, { ...options, el, title });
  }

  weight(side: Side, query: number, key: number): number | null {
    return this.shown[side]?.probe.weight(query, key) ?? null;
  }

  async settled(): Promise<void> {
    for (const side of SIDES) await this.shown[side]?.probe.settled();
  }

  svgs(): Promise<string[]> {
    return Promise.all(SIDES.flatMap((side) => this.shown[side]?.svg() ?? []));
  }

  /** The largest weight of both heads, as far as one tile shows it: where the colours of both maps end. */
  async commonTop(at: HeadAt, stop: AbortSignal): Promise<number> {
    const { pool } = this.scene.choice.drawn.peek();
    const both = [this.scene.source, this.other].map((source) => largestWeight(source, at, pool, stop));
    return Math.max(...await Promise.all(both));
  }
}

/** The same choice, drawn by means: large maps are compared by their means only. */
function withMeans(choice: Choice): Choice {
  const drawn = computed(() => ({ ...choice.drawn.value, pool: "mean" as const }));
  return Object.assign(Object.create(Choice.prototype) as Choice, choice, { drawn });
}
