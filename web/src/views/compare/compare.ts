/** Two traces side by side with one selection, and what B does other than A. */
import { sentenceOf } from "../../language/errorText";
import { computed, signal as live } from "@preact/signals";
import { Choice } from "../../choose/choice";
import { type Markup, node, svgDocument } from "../../paint/svg";
import { shortened } from "../../paint/text";
import { type Source, TILE, tokensOf } from "../../trace/source";
import { type Difference, type Facts, differenceOf } from "./difference";
import { pairOf } from "./pair";
import { COMPARE } from "./style";
import { type PanelOptions, mapPanel } from "../map/map";
import { fourDigits } from "../../paint/digits";
import { type Child, h } from "../parts/element";
import { dress } from "../parts/sheet";
import { colour } from "../parts/plainStyle";
import { sentenceFile } from "../parts/shape";
import type { Scene, Shown, View } from "../parts/view";

interface MapProbe {
  readonly weight: (query: number, key: number) => number | null;
  readonly settled: () => Promise<void>;
}
type Side = "a" | "b" | "difference";

/** A, B and B − A. */
export const compare: View = (scene: Scene): Shown => {
  const { el, source, other, choice, say, signal } = scene;
  dress(el, COMPARE, signal);
  const facts = h("div", { class: "facts" }), panels = h("div", { class: "panels" });
  const root = h("div", { class: "rg rg-compare" }, facts, panels);
  el.replaceChildren(root);
  let shown: Partial<Record<Side, Shown>> = {}, difference: Difference | null = null, found: Facts | null = null;
  let built = "", factsOf = "", stop: AbortController | null = null, asking: AbortController | null = null;
  const top = live<number | null>(null); // the end of the colour scale of both maps
  signal.addEventListener("abort", () => { stop?.abort(); asking?.abort(); }, { once: true });

  const probe = {
    a: (query: number, key: number): number | null => weightIn("a", query, key),
    b: (query: number, key: number): number | null => weightIn("b", query, key),
    difference: (query: number, key: number): number | null => weightIn("difference", query, key),
    facts: (): Facts | null => found,
    top: (): number | null => top.peek(),
    settled: async (): Promise<void> => {
      for (const one of Object.values(shown)) await (one.probe as unknown as MapProbe | undefined)?.settled();
    },
  };
  const weightIn = (side: Side, query: number, key: number): number | null =>
    (shown[side]?.probe as unknown as MapProbe | undefined)?.weight(query, key) ?? null;
  Object.assign(el, { regard: probe });

  if (!other) {
    choice.watch(() => {
      colour(root, scene.theme());
      root.replaceChildren(h("p", { class: "message", role: "status" }, say("compare.none")));
    }, signal);
    return { probe, svg: async () => sentenceFile(say("compare.none"), scene.theme()) };
  }

  /** New panels: another layer may have another shape, or be missing in B. */
  const build = (): void => {
    stop?.abort();
    stop = new AbortController();
    shown = {};
    const { signal: until } = stop, pair = pairOf(source.info, other.info, choice.picked.peek());
    const put = (side: Side, of: Source, options: PanelOptions = {}, by: Choice = choice): HTMLElement => {
      const box = h("div", { class: side === "difference" ? "panel wide" : "panel", "data-side": side });
      panels.append(box);
      const name = shortened(of.info.name || of.info.model, 60);
      const title = side === "difference" ? say("compare.difference") : `${side.toUpperCase()} · ${name}`;
      const shared = side === "difference" ? {} : { top: () => top.value };
      shown[side] = mapPanel(
        { ...scene, source: of, choice: by, signal: until }, { ...options, ...shared, el: box, title },
      );
      return box;
    };
    panels.replaceChildren();
    put("a", source);
    const absent = (): HTMLElement => h("p", { class: "message", role: "status" }, pair.why(say));
    if (pair.there) put("b", other);
    else panels.append(h("div", { class: "panel" }, absent()));
    difference = pair.shape ? differenceOf(source, other, pair.shape) : null;
    if (!difference) return;
    const by = difference.exact ? choice : meaning(choice);
    put("difference", other, { tiles: difference.tile, diverging: true }, by);
  };

  const tellFacts = (): void => {
    const pair = pairOf(source.info, other.info, choice.picked.peek());
    const note = (words: string): Child => words !== "" && h("p", { class: "note" }, words);
    const lines: Child[] = [h("p", { class: "read" }, say("compare.read"))];
    if (found && found.largest === 0) lines.push(h("p", {}, say("compare.equal")));
    else if (found) lines.push(...factLine(found));
    else if (difference) lines.push(h("p", { class: "pale" }, say("compare.loading")));
    const names = pair.names ? say("compare.names", pair.names) : "";
    const tokens = pair.tokens ? say("compare.tokens") : "", why = pair.there && !pair.shape ? pair.why(say) : "";
    lines.push(note([names, tokens, why].filter(Boolean).join(" ")));
    if (difference && !difference.exact && found) lines.push(note(say("compare.means", { size: found.size })));
    facts.replaceChildren(...lines.filter((one): one is Node => one instanceof Node));
  };
  const factLine = ({ largest, query, key, mean, size }: Facts): Node[] => {
    const { layer, batch } = choice.picked.peek();
    const name = (which: "queries" | "keys", at: number): HTMLElement =>
      h(
        "bdi", { class: which === "queries" ? "query" : "key" },
        `${shortened(tokensOf(source.info, layer, batch, which)?.shown[at] ?? "", 20)} #${at}`,
      );
    const about = size === 1 ? say("compare.seen") : say("compare.part", { size });
    return [
      h(
        "span", {}, `${say("compare.largest")} `,
        h("strong", { title: String(largest) }, `${largest > 0 ? "+" : ""}${fourDigits(largest)}`), " ",
        h(
          "button", { type: "button", "data-do": "jump", onclick: () => choice.pick({ query, key }) },
          name("queries", query), " → ", name("keys", key),
        ),
      ),
      h(
        "span", {}, `${say("compare.mean")} `, h("strong", { title: String(mean) }, fourDigits(mean)),
        h("span", { class: "pale" }, ` ${about}`),
      ),
    ];
  };

  /** What the two maps need in common: the end of their scale, and how far they are apart. */
  const look = async (until: AbortSignal): Promise<void> => {
    const { layer, batch, head } = choice.picked.peek(), at = { layer, batch, head }, { pool } = choice.drawn.peek();
    const pair = pairOf(source.info, other.info, choice.picked.peek());
    if (!pair.there) return;
    const most = async (of: Source): Promise<number> => {
      const [, , queries, keys] = of.info.layers[layer]!.shape;
      const level = Math.max(0, Math.ceil(Math.log2(Math.max(queries, keys) / TILE)));
      const tile = await of.tile({ ...at, level, row: 0, column: 0 }, level >= 3, until);
      return tile[pool].reduce((large, weight) => Math.max(large, weight || 0), 0);
    };
    const [ends, now] = await Promise.all(
      [Promise.all([most(source), most(other)]), difference?.facts(at, until) ?? null]
    );
    if (until.aborted) return;
    top.value = Math.max(...ends);
    found = now;
    tellFacts();
  };

  choice.watch(() => {
    const { layer, batch, head } = choice.picked.value, { pool } = choice.drawn.value;
    colour(root, scene.theme());
    say("compare.read");
    const pair = pairOf(source.info, other.info, choice.picked.value);
    const now = [layer, batch, pair.there, pair.shape?.join()].join(" ");
    if (now !== built) {
      built = now;
      build();
    }
    const name = [layer, batch, head, pool].join(" ");
    if (name !== factsOf) {
      factsOf = name;
      found = null;
      asking?.abort();
      const mine = (asking = new AbortController());
      look(mine.signal).catch((error: unknown) => {
        if (mine.signal.aborted) return;
        facts.replaceChildren(
          h(
            "p", { role: "alert" },
            say("compare.failed", { why: sentenceOf(error) }),
          )
        );
      });
    }
    tellFacts();
  }, signal);

  return {
    probe,
    svg: async () => {
      const files = await Promise.all(
        (["a", "b", "difference"] as const).flatMap((side) => (shown[side]?.svg ? [shown[side].svg()] : []))
      );
      return beside(files);
    },
    table: async () => {
      const { layer, batch, head, query } = choice.picked.peek(), at = { layer, batch, head };
      const pair = pairOf(source.info, other.info, choice.picked.peek());
      const names = [say("query"), say("key"), "A", "B", say("compare.difference")];
      if (!pair.shape) return [names];
      const [queries, keys] = pair.shape;
      const wanted = queries * keys <= 4096 ? Array.from({ length: queries }, (_, i) => i) : [query ?? queries - 1];
      const lines = await Promise.all(wanted.map(async (i) => {
        const [one, two] = await Promise.all([source.row(at, i), other.row(at, i)]);
        return Array.from(
          one.weights, (weight, key) => [i, key, weight, two.weights[key]!, two.weights[key]! - weight],
        );
      }));
      return [names, ...lines.flat()];
    },
  };
};

/** The same choice, drawn by means: large maps are compared by their means only. */
function meaning(choice: Choice): Choice {
  const drawn = computed(() => ({ ...choice.drawn.value, pool: "mean" as const }));
  return Object.assign(Object.create(Choice.prototype) as Choice, choice, { drawn });
}

/** Pictures beside each other in one file. */
function beside(files: readonly string[]): string {
  const parts: Markup[] = [];
  let x = 0, height = 0;
  for (const file of files) {
    const size = /width="([\d.]+)" height="([\d.]+)"/.exec(file);
    parts.push(node("g", { transform: `translate(${x} 0)` }, { markup: file }));
    x += Number(size?.[1] ?? 0) + 12;
    height = Math.max(height, Number(size?.[2] ?? 0));
  }
  return svgDocument(Math.max(1, x - 12), Math.max(1, height), parts);
}
