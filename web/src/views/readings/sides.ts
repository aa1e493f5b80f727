/** The two models beside each other: a name, what it may look at, a choice of layer and head, and the map. */
import { type Signal, signal as live } from "@preact/signals";
import type { Choice } from "../../choose/choice";
import type { Key } from "../../language/language";
import { shortenText } from "../../paint/text";
import type { Source } from "../../trace/source";
import { type MapExports, mapPanel } from "../map/panel";
import { fillSelect } from "../parts/dom";
import { h } from "../parts/element";
import { largestWeight } from "../parts/largestWeight";
import { shortLayerNames } from "../parts/names";
import type { Scene } from "../parts/view";
import { type Alignment, alignTokens } from "./align";
import { BesideChoice, besideHead } from "./besideChoice";
import type { HeadNumbers } from "./headNumbers";
import { shareText } from "./words";

export type SideName = "left" | "right";
export const SIDES: readonly SideName[] = ["left", "right"];

/** One model on its side. */
export interface Side {
  readonly name: SideName;
  readonly source: Source;
  readonly choice: Choice;
  readonly title: string;
}

export class Sides {
  readonly element = h("div", { class: "sides" });
  readonly both: readonly [Side, Side];
  readonly top: Signal<number | null> = live(null); // the end of the colour scale of both maps
  private readonly shown = new Map<SideName, MapExports>();
  private readonly captions = new Map<SideName, HTMLElement>();

  constructor(private readonly scene: Scene, other: Source) {
    const { source, choice, signal } = scene;
    const align = (): Alignment => this.alignment();
    const title = ({ info }: Source): string => shortenText(info.name || info.model, 60);
    this.both = [
      { name: "left", source, choice, title: title(source) },
      {
        name: "right", source: other, title: title(other),
        choice: new BesideChoice(choice, other.info, align, signal),
      },
    ];
    this.both.forEach((side) => this.put(side));
  }

  /** Which tokens of the two stand for the same characters. */
  alignment(): Alignment {
    const { source, choice } = this.scene, picked = choice.picked.peek(), { info } = this.both?.[1].source ?? source;
    return alignTokens(source.info, info, picked.layer, besideHead(picked, info).layer);
  }

  private put(side: Side): void {
    const { say } = this.scene, caption = h("p", { class: "pale", "data-part": "caption" });
    const plot = h("div", { class: "plot", "data-side": side.name });
    const bar = h("div", { class: "bar" }, h("strong", {}, h("bdi", {}, side.title)), this.headPicker(side));
    this.element.append(h("section", { class: "side", "aria-label": side.title }, bar, caption, plot));
    this.captions.set(side.name, caption);
    const { source, choice } = side, options = { el: plot, top: () => this.top.value };
    this.shown.set(side.name, mapPanel({ ...this.scene, say, source, choice }, options));
  }

  /** Lists of layers and heads; the shell's grid of heads is the first model's. */
  private headPicker({ source, choice }: Side): HTMLElement {
    const { say, signal } = this.scene, { layers } = source.info;
    const names = shortLayerNames(layers.map(({ name }) => name));
    const layer = h("select", { onchange: () => choice.pick({ layer: Number(layer.value) }) });
    const head = h("select", { onchange: () => choice.pick({ head: Number(head.value) }) });
    choice.watch(() => {
      const { picked } = choice, now = picked.value, heads = layers[now.layer]?.shape[1] ?? 0;
      fillSelect(layer, names.map((name, i) => [String(i), shortenText(name, 24)]), String(now.layer));
      fillSelect(head, Array.from({ length: heads }, (_, i) => [String(i), String(i)]), String(now.head));
    }, signal);
    return h("span", { class: "pickers" }, h("label", {}, say("layer"), layer), h("label", {}, say("head"), head));
  }

  /** Says above each map what it may look at. */
  showNumbers(numbers: readonly (HeadNumbers | null)[]): void {
    const { say } = this.scene;
    this.both.forEach(({ name }, i) => {
      const found = numbers[i];
      const words = found && say(sightKey(found), { share: shareText(found.mayLook) });
      this.captions.get(name)!.textContent = words ?? "";
    });
  }

  /** Both maps have one scale, so that the same colour is the same weight. */
  async findTop(signal: AbortSignal): Promise<void> {
    const { pool } = this.scene.choice.drawn.peek();
    const tops = await Promise.all(this.both.map(({ source, choice }) => {
      const { layer, batch, head } = choice.picked.peek();
      return largestWeight(source, { layer, batch, head }, pool, signal);
    }));
    if (!signal.aborted) this.top.value = Math.max(...tops);
  }

  weight(name: SideName, query: number, key: number): number | null {
    return this.shown.get(name)?.probe.weight(query, key) ?? null;
  }

  async settled(): Promise<void> {
    for (const one of this.shown.values()) await one.probe.settled();
  }

  svgs(): Promise<string[]> {
    return Promise.all([...this.shown.values()].map((one) => one.svg()));
  }
}

const sightKey = ({ mayLook, ahead }: HeadNumbers): Key =>
  (mayLook === 1 ? "readings.sees.all" : ahead === 0 ? "readings.sees.back" : "readings.sees.part");
