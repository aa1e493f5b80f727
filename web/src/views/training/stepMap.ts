/** The map at a step of a training. The next one is drawn below it and takes its place when it is done: no flicker. */
import type { Source } from "../../trace/source";
import { type MapProbe, type MapExports, mapPanel } from "../map/panel";
import { h } from "../parts/element";
import type { Scene } from "../parts/view";

const PATIENCE = 600; // milliseconds that the old map stays at most

export class StepMap {
  readonly element = h("div", { class: "map" });
  private panel: { readonly shown: MapExports; readonly box: HTMLElement; readonly stop: AbortController } | null = null;

  /** `tell` hears whose map is shown. */
  constructor(private readonly scene: Scene, private readonly tell: (source: Source | null) => void) {
    scene.signal.addEventListener("abort", () => this.panel?.stop.abort(), { once: true });
  }

  get isEmpty(): boolean {
    return this.panel === null;
  }

  get probe(): MapProbe | null {
    return this.panel?.shown.probe ?? null;
  }

  async svg(): Promise<string> {
    return this.panel?.shown.svg() ?? "";
  }

  /** A sentence in place of the map. */
  showMessage(words: string, role: "alert" | "status"): void {
    this.tell(null);
    this.panel?.stop.abort();
    this.panel = null;
    this.element.replaceChildren(h("p", { class: "message", role }, words));
  }

  async show(source: Source, title: string): Promise<void> {
    this.tell(source); // who keeps the choice within what is seen may move it now
    const { scene } = this, { layer, head } = scene.choice.picked.peek(), shape = source.info.layers[layer]?.shape;
    if (!shape || head >= shape[1])
      return this.showMessage(scene.say("training.layerless", { layer, head }), "status");
    const stop = new AbortController(), box = h("div", {}), old = this.panel;
    if (!old) this.element.replaceChildren();
    this.element.prepend(box);
    this.panel = { shown: mapPanel({ ...scene, source, signal: stop.signal }, { el: box, title }), box, stop };
    await Promise.race([this.probe!.settled(), new Promise((wake) => setTimeout(wake, PATIENCE))]);
    old?.stop.abort();
    old?.box.remove();
  }
}
