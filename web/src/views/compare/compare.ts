/** Two traces side by side with one selection, and what B does other than A. */
import { errorText } from "../../language/errorText";
import type { Source } from "../../trace/source";
import { h } from "../parts/element";
import { joinPictures } from "../parts/joinPictures";
import { setColours } from "../parts/plainStyle";
import { messageFile } from "../parts/shape";
import { adoptStyle } from "../parts/sheet";
import type { Scene, ViewExports, View } from "../parts/view";
import type { DifferenceFacts } from "./difference";
import { factLines } from "./facts";
import { Panels, type Side } from "./panels";
import { COMPARE } from "./style";

/** A, B and B − A. */
export const compare: View = (scene: Scene): ViewExports => {
  const { el, other, signal } = scene;
  adoptStyle(el, COMPARE, signal);
  const root = h("div", { class: "rg rg-compare" });
  el.replaceChildren(root);
  return other ? new Comparison(scene, other, root).shown() : nothingToCompare(scene, root);
};

function nothingToCompare(scene: Scene, root: HTMLElement): ViewExports {
  const { el, choice, say, signal } = scene;
  const none = (): null => null;
  const probe = { a: none, b: none, difference: none, facts: none, top: none, settled: async () => undefined };
  Object.assign(el, { regard: probe });
  choice.watch(() => {
    setColours(root, scene.theme());
    root.replaceChildren(h("p", { class: "message", role: "status" }, say("compare.none")));
  }, signal);
  return { probe, svg: async () => messageFile(say("compare.none"), scene.theme()) };
}

class Comparison {
  private readonly panels: Panels;
  private readonly lines = h("div", { class: "facts" });
  private facts: DifferenceFacts | null = null; // null until both maps were read
  private factsOf = "";
  private request: AbortController | null = null;

  constructor(private readonly scene: Scene, private readonly other: Source, root: HTMLElement) {
    const { choice, say, signal } = scene;
    this.panels = new Panels(scene, other);
    root.append(this.lines, this.panels.element);
    signal.addEventListener("abort", () => this.request?.abort(), { once: true });
    choice.watch(() => {
      const { layer, batch, head } = choice.picked.value, { pool } = choice.drawn.value;
      setColours(root, scene.theme());
      say("compare.read");
      this.panels.update();
      const name = [layer, batch, head, pool].join(" ");
      if (name !== this.factsOf) {
        this.factsOf = name;
        this.readMaps();
      }
      this.showFacts();
    }, signal);
  }

  private showFacts(): void {
    this.lines.replaceChildren(...factLines(this.scene, this.panels.pair(), this.panels.difference, this.facts));
  }

  /** Asks what the two maps need in common: the end of their scale, and how far they are apart. */
  private readMaps(): void {
    this.facts = null;
    this.request?.abort();
    const { signal } = (this.request = new AbortController());
    this.load(signal).catch((error: unknown) => {
      if (signal.aborted) return;
      const words = this.scene.say("compare.failed", { why: errorText(error) });
      this.lines.replaceChildren(h("p", { role: "alert" }, words));
    });
  }

  private async load(stop: AbortSignal): Promise<void> {
    const { layer, batch, head } = this.scene.choice.picked.peek(), at = { layer, batch, head }, { panels } = this;
    if (!panels.pair().exists) return;
    const [top, facts] = await Promise.all([panels.commonTop(at, stop), panels.difference?.facts(at, stop) ?? null]);
    if (stop.aborted) return;
    panels.top.value = top;
    this.facts = facts;
    this.showFacts();
  }

  shown(): ViewExports {
    const { panels } = this;
    const weight = (side: Side) => (query: number, key: number): number | null => panels.weight(side, query, key);
    const probe = {
      a: weight("a"), b: weight("b"), difference: weight("difference"), facts: (): DifferenceFacts | null => this.facts,
      top: (): number | null => panels.top.peek(), settled: (): Promise<void> => panels.settled(),
    };
    Object.assign(this.scene.el, { regard: probe });
    return { probe, svg: async () => joinPictures(await panels.svgs()), table: () => this.table() };
  }

  /** The weights of both; of a large map only one row. */
  private async table(): Promise<(string | number)[][]> {
    const { source, choice, say } = this.scene, { layer, batch, head, query } = choice.picked.peek();
    const names = [say("query"), say("key"), "A", "B", say("compare.difference")], { shape } = this.panels.pair();
    if (!shape) return [names];
    const [queries, keys] = shape, at = { layer, batch, head };
    const wanted = queries * keys <= 4096 ? Array.from({ length: queries }, (_, i) => i) : [query ?? queries - 1];
    const lines = await Promise.all(wanted.map(async (i) => {
      const [a, b] = await Promise.all([source.row(at, i), this.other.row(at, i)]);
      return Array.from(a.weights, (weight, key) => [i, key, weight, b.weights[key]!, b.weights[key]! - weight]);
    }));
    return [names, ...lines.flat()];
  }
}
