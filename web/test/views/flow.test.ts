import { describe, expect, it } from "vitest";
import { FIRST } from "../../src/choose/choice";
import type { Flow, LayerInfo } from "../../src/trace/source";
import { flow } from "../../src/views/flow/flow";
import { largest, lineOf, strongest, tracedToken } from "../../src/views/flow/requests";
import { visibleColumns, everyName, planOf, scrollToToken, under } from "../../src/views/flow/layout";
import { fake, named } from "../fake";
import { HOSTILE, press, staged, until } from "./heads.stage";

interface Probe {
  readonly share: (line: number, token: number, part?: "source" | "target") => number;
  readonly raw: (token: number) => number;
  readonly visible: () => readonly [number, number];
}
const words = (n: number): string[] => Array.from({ length: n }, (_, i) => `word${i}`);

/** An encoder of 5 tokens and a decoder of 3, with cross-attention. */
function pair() {
  const source = fake(words(5), { layers: 3 });
  const layer = (name: string, more: Partial<LayerInfo>): LayerInfo => ({ ...source.info.layers[0]!, name, ...more });
  const layers = [
    layer("encoder.0", { side: "encoder" }),
    layer("decoder.0.self", { side: "decoder", shape: [1, 4, 3, 3], queries: [1], keys: [1] }),
    layer("decoder.0.cross", { side: "decoder", kind: "cross", shape: [1, 4, 3, 5], queries: [1], keys: [0] }),
  ];
  const found: Flow = {
    lines: 4, layers: layers.map(({ name }) => name), n: 3, m: 5, targetTokens: 1, sourceTokens: 0, error: 0,
    target: Float32Array.of(0, 0.1, 0.3, 0, 0.1, 0.3, 0, 0, 0.5, 0, 0, 1),
    source: Float32Array.of(0.2, 0, 0.3, 0, 0.1, 0.1, 0.1, 0.3, 0.1, 0, 0, 0, 0.5, 0, 0, 0, 0, 0, 0, 0),
  };
  return Object.assign(source, {
    info: { ...source.info, layers, tokens: [named(words(5)), named(["猫", "坐", "。"])] }, flow: async () => found,
    row: async () => ({ weights: Float32Array.of(0.1, 0.2, 0.3, 0.4, 0), scores: null,
      allowed: Uint8Array.of(1, 1, 1, 1, 0) }),
  });
}

describe("the flow view", () => {
  it("shows the shares of the rollout of the last token, and its raw attention", async () => {
    const source = fake(words(7), { causal: true }), stage = staged<Probe>(flow, source, { layer: 1, head: 2 });
    const wanted = await source.flow({ query: 6, batch: 0, residual: 0.5, by: "weights" });
    await until(() => stage.probe.share(0, 0) > 0 && stage.probe.raw(0) > 0);
    for (let line = 0; line < 4; line++) {
      let sum = 0;
      for (let token = 0; token < 7; token++) {
        expect(stage.probe.share(line, token)).toBe(wanted.target[line * 7 + token]);
        sum += stage.probe.share(line, token);
      }
      expect(sum).toBeCloseTo(1, 5);
    }
    source.weightsOf({ layer: 1, batch: 0, head: 2 }, 6).forEach((weight, key) =>
      expect(stage.probe.raw(key)).toBeCloseTo(weight, 6));
    expect(stage.words()).toContain("not an explanation");
    expect((await stage.shown.table!()).length).toBe(1 + 4 * 7);
    expect(stage.el.querySelector("[aria-live]")!.textContent).toContain("draws from");
    stage.leave();
  });

  it("follows the token that is picked, the share of the residual stream and the keyboard", async () => {
    const source = fake(words(6)), stage = staged<Probe>(flow, source, { query: 2 });
    await until(() => stage.probe.share(3, 2) === 1);
    const slider = stage.el.querySelector<HTMLInputElement>("input[type=range]")!;
    slider.value = "4";
    slider.dispatchEvent(new Event("input"));
    const wanted = await source.flow({ query: 2, batch: 0, residual: 0.2, by: "weights" });
    await until(() => stage.probe.share(0, 0) === wanted.target[0]);
    expect(stage.choice.drawn.value.residual).toBe(0.2);
    press(stage.el, "ArrowRight");
    expect(stage.choice.picked.value.query).toBe(3);
    await until(() => stage.probe.share(3, 3) === 1);
    stage.leave();
  });

  it("is what the choice says, so that a link opens the same flow", async () => {
    const source = fake(words(40)), drawn = { residual: 0.35, by: "values", near: 4 } as const;
    const asked: unknown[] = [], flowing = source.flow.bind(source);
    source.flow = async (at) => {
      asked.push(at);
      return flowing(at);
    };
    const stage = staged<Probe>(flow, source, { query: 2 }, drawn);
    await until(() => stage.probe.share(0, 0) > 0);
    expect(asked).toEqual([{ query: 2, batch: 0, residual: 0.35, by: "values", coarse: true }]);
    const [first, last] = stage.probe.visible();
    expect(last - first).toBeLessThan(20);
    expect(stage.el.querySelector<HTMLInputElement>("input[type=range]")!.value).toBe("7");
    expect(stage.el.querySelector("select")!.value).toBe("values");
    press(stage.el, "-");
    expect(stage.choice.drawn.value).toMatchObject({ ...drawn, near: 2 });
    stage.choice.draw({ near: 1, by: "weights" });
    await until(() => stage.probe.visible()[1] === 39);
    expect(stage.el.querySelector("select")!.value).toBe("weights");
    stage.leave();
  });

  it("shows source and target of an encoder–decoder", async () => {
    const stage = staged<Probe>(flow, pair(), { layer: 2 });
    await until(() => stage.probe.share(0, 2, "source") > 0);
    expect(stage.probe.share(0, 2)).toBeCloseTo(0.3, 6);
    expect(stage.probe.share(2, 2, "source")).toBe(0.5);
    const svg = await stage.shown.svg!();
    for (const word of ["source", "target", "猫", "word4", "into decoder.0.cross"]) expect(svg).toContain(word);
    stage.leave();
  });

  it("says why layers do not chain", async () => {
    const source = fake(words(4));
    source.flow = async () => {
      throw new Error("layer 2 reads 7 tokens, but layer 1 gives 4");
    };
    const stage = staged<Probe>(flow, source);
    await until(() => stage.el.querySelector("[role=alert]")!.textContent!.includes("layer 2 reads 7 tokens"));
    stage.leave();
  });

  it("shows hostile tokens as themselves", async () => {
    const stage = staged<Probe>(flow, fake(HOSTILE));
    await until(() => stage.probe.share(0, 0) > 0);
    expect(await stage.shown.svg!()).not.toMatch(/<script|<img/);
    expect(stage.el.querySelectorAll("script, img")).toHaveLength(0);
    stage.leave();
  });
});

describe("which token is traced", () => {
  it("is the last where none is picked, and one of the decoder where an encoder layer is in hand", () => {
    const { info } = pair();
    expect(tracedToken(info, { ...FIRST, layer: 1 })).toEqual({ query: 2, raw: { layer: 1, batch: 0, head: 0 },
      part: "target" });
    expect(tracedToken(info, { ...FIRST, layer: 2, query: 1, head: 3 })).toEqual({ query: 1,
      raw: { layer: 2, batch: 0, head: 3 }, part: "source" });
    expect(tracedToken(info, { ...FIRST, layer: 0, query: 4 })).toEqual({ query: 2, raw: { layer: 2, batch: 0, head: 0 },
      part: "source" });
    expect(tracedToken({ ...info, layers: [] }, FIRST)).toBeNull();
  });

  it("draws from the largest shares of both parts", async () => {
    const found = await pair().flow();
    expect(largest(found, 0)).toBeCloseTo(0.3, 6);
    expect(lineOf(found, "source", 1)).toHaveLength(5);
    expect(strongest(found, 1, 2).map(({ part, token }) => [part, token])).toEqual([["source", 2], ["target", 2]]);
  });
});

describe("a long flow", () => {
  it("is sampled at first, says how sure that is, and becomes exact", async () => {
    const source = fake(words(6)), exact = source.flow.bind(source), asked: boolean[] = [];
    let done = (): void => undefined;
    const later = new Promise<void>((resolve) => (done = resolve));
    source.flow = async (at) => {
      asked.push(at.coarse === true);
      const found = await exact(at);
      if (at.coarse) return { ...found, target: found.target.map((share) => share / 2), error: 0.0235 };
      await later;
      return found;
    };
    const wanted = await exact({ query: 2, batch: 0, residual: 0.5, by: "weights" });
    const stage = staged<Probe>(flow, source, { query: 2 });
    await until(() => stage.words().includes("± 2.4 %") || stage.words().includes("± 2.3 %"));
    expect(stage.probe.share(0, 0)).toBe(wanted.target[0]! / 2);
    expect(stage.el.querySelector("[aria-live]")!.textContent).toBe("");
    expect((await stage.shown.table!())[0]).toContain("share (sampled, ± 0.0235)");
    done();
    await until(() => stage.probe.share(0, 0) === wanted.target[0]);
    expect(stage.words()).not.toContain("Sampled");
    expect((await stage.shown.table!())[0]).toContain("share");
    expect(asked).toEqual([true, false]);
    stage.leave();
  });
});

describe("the plan of the flow view", () => {
  it("fits all tokens where they can be seen, and scrolls where not", () => {
    const room = { width: 900, height: 500 };
    expect(planOf(room, 5, 0, 40, 1, 100, 60).width).toBeLessThanOrEqual(900);
    const long = planOf(room, 5, 0, 4000, 1, 100, 60), part = long.parts[0]!;
    expect(long.column).toBe(3);
    expect(long.width).toBeGreaterThan(12_000);
    const scroll = scrollToToken(long, part, 2000, 0, 900), [first, last] = visibleColumns(long, part, scroll, 900);
    expect(first).toBeLessThan(2000);
    expect(last).toBeGreaterThan(2000);
    expect(last - first).toBeLessThan(300);
    expect(everyName(3) * 3).toBeGreaterThanOrEqual(15);
    expect(everyName(20)).toBe(1);
  });

  it("finds cells, bars and names under a point", () => {
    const plan = planOf({ width: 900, height: 500 }, 4, 5, 3, 1, 100, 60), [source, target] = plan.parts;
    const at = (part: typeof source, token: number, y: number) => under(plan, part!.start + (token + 0.5) * plan.column,
      y, 0, 0, 900);
    expect(at(source, 2, plan.top + 1.5 * plan.line)).toEqual({ part: source, token: 2, row: 1 });
    expect(at(target, 1, plan.top - 4)).toEqual({ part: target, token: 1, row: "names" });
    expect(at(target, 2, plan.bars[0] + 4)?.row).toBe("rollout");
    expect(at(target, 2, plan.bars[1] + 4)?.row).toBe("raw");
    expect(under(plan, 20, plan.top + 5, 0, 0, 900)).toBeNull();
  });
});
