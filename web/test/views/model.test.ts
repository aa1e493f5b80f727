import { describe, expect, it } from "vitest";
import type { Thumbs } from "../../src/trace/source";
import { model } from "../../src/views/model/model";
import { type At, extent, gridOf, headAt, placeOf, visibleRows, sizeOf, stepHead, scrollToCell,
  headUnder } from "../../src/views/model/layout";
import { sortHeads } from "../../src/views/model/measures";
import { shortLayerNames } from "../../src/views/parts/names";
import { boxOf } from "../../src/views/model/boxes";
import { pixelsOf, isPooled, roundTop } from "../../src/views/model/pictures";
import { fake } from "../fake";
import { HOSTILE, press, staged, until } from "./heads.stage";

interface Probe {
  readonly order: () => At[];
  readonly value: (layer: number, head: number, measure: string) => number | null;
  readonly thumb: (layer: number, head: number) => Float32Array;
}
const words = (n: number): string[] => Array.from({ length: n }, (_, i) => `word${i}`);

describe("the model view", () => {
  it("shows the weights of every head, the largest of each cell", async () => {
    const source = fake(words(9), { causal: true, layers: 2, heads: 3 }), stage = staged<Probe>(model, source);
    await until(() => stage.probe.thumb(1, 2).length > 0);
    for (let query = 0; query < 9; query++)
      source.weightsOf({ layer: 1, batch: 0, head: 2 }, query).forEach((weight, key) =>
        expect(stage.probe.thumb(1, 2)[query * 9 + key]).toBeCloseTo(weight, 6));
    expect(stage.probe.order()).toEqual([0, 1].flatMap((layer) => [0, 1, 2].map((head) => ({ layer, head }))));
    await until(() => stage.words().includes("Each cell is one weight"));
    stage.leave();
  });

  it("sorts all heads by any measure, the Largest first unless it is turned, and says so", async () => {
    const source = fake(words(8), { layers: 3, heads: 5 }),
      stage = staged<Probe>(model, source, {}, { sort: "entropy" });
    const all = await Promise.all([0, 1, 2].map((layer) => source.measures(layer, 0)));
    const entropy = (at: At): number => all[at.layer]!.values["entropy"]![at.head]!;
    await until(() => stage.probe.value(2, 4, "entropy") !== null && stage.probe.order().length === 15);
    const falling = (): boolean =>
      stage.probe.order().every((at, i, order) => i === 0 || entropy(order[i - 1]!) >= entropy(at));
    await until(falling);
    expect(stage.words()).toContain("Largest first");
    for (const name of Object.keys(all[0]!.values)) {
      stage.choice.draw({ sort: name });
      const value = (at: At): number => all[at.layer]!.values[name]![at.head] ?? -Infinity;
      await until(() => stage.probe.order().every((at, i, order) => i === 0 || value(order[i - 1]!) >= value(at)));
    }
    stage.choice.draw({ sort: "entropy", falling: false });
    await until(() => stage.probe.order().every((at, i, order) => i === 0 || entropy(order[i - 1]!) <= entropy(at)));
    expect(stage.words()).toContain("Smallest first");
    expect(stage.probe.value(1, 3, "entropy")).toBe(entropy({ layer: 1, head: 3 }));
    const table = await stage.shown.table!();
    expect(table).toHaveLength(16);
    expect(table[0]).toContain("distance");
    stage.leave();
  });

  it("measures layer by layer, says how far it is, and can be stopped", async () => {
    const source = fake(words(6), { layers: 5 }), measures = source.measures.bind(source);
    const waiting: (() => void)[] = [];
    source.measures = async (layer, batch) => {
      await new Promise<void>((go) => waiting.push(go));
      return measures(layer, batch);
    };
    const stage = staged<Probe>(model, source, {}, { sort: "sink" });
    for (let i = 0; i < 2; i++) {
      await until(() => waiting.length === i + 1);
      waiting[i]!();
    }
    await until(() => stage.words().includes("Measured 2 of 5 layers"));
    [...stage.el.querySelectorAll("button")].find((button) => button.textContent === "Stop")!.click();
    expect(stage.words()).toContain("Continue");
    waiting[2]?.();
    await new Promise((done) => setTimeout(done, 20));
    expect(waiting.length).toBeLessThanOrEqual(3);
    stage.leave();
  });

  it("moves by arrows and opens by Enter", async () => {
    const stage = staged<Probe>(model, fake(words(6), { layers: 3, heads: 4 }), { view: "model" });
    await until(() => stage.probe.thumb(0, 0).length > 0);
    for (const key of ["ArrowDown", "ArrowRight", "ArrowRight"]) press(stage.el, key);
    expect(stage.choice.picked.value).toMatchObject({ layer: 1, head: 2, view: "model" });
    press(stage.el, "Enter");
    expect(stage.choice.picked.value).toMatchObject({ layer: 1, head: 2, view: "map" });
    stage.leave();
  });

  it("says what went wrong, and shows hostile names as text", async () => {
    const source = fake(HOSTILE, { layers: 1 }, {});
    const hostile = Object.assign(source,
      { info: { ...source.info, layers: source.info.layers.map((layer) => ({ ...layer, name: HOSTILE[0]! })) } });
    const stage = staged<Probe>(model, hostile);
    await until(() => stage.probe.thumb(0, 0).length > 0);
    expect(await stage.shown.svg!()).not.toContain("<script");
    expect(stage.el.querySelectorAll("script, img")).toHaveLength(0);
    stage.leave();
    const broken = fake(words(4));
    broken.thumbs = async () => {
      throw new Error("the disk is full");
    };
    const failed = staged<Probe>(model, broken);
    await until(() => failed.el.querySelector("[role=alert]")!.textContent === "the disk is full");
    failed.leave();
  });
});

describe("the order of heads", () => {
  it("puts heads without a value last, both ways", () => {
    const heads = [0, 1, 2, 3].map((head) => ({ layer: 0, head })), values = [2, null, 0.5, 2];
    const value = (at: At): number | null => values[at.head]!;
    expect(sortHeads(heads, value, false).map((at) => at.head)).toEqual([2, 0, 3, 1]);
    expect(sortHeads(heads, value, true).map((at) => at.head)).toEqual([0, 3, 2, 1]);
  });
});

describe("the grid of heads", () => {
  const plain = gridOf(900, 500, [4, 4, 2], 80, null);
  const order = Array.from({ length: 23 }, (_, i) => ({ layer: i % 3, head: Math.floor(i / 3) }));
  const flat = gridOf(700, 500, [8, 8, 7], 80, order);

  it("finds each head where it stands", () => {
    for (const grid of [plain, flat])
      for (let row = 0; row < grid.rows; row++)
        for (let column = 0; column < grid.columns; column++) {
          const at = headAt(grid, row, column);
          if (at === null) continue;
          expect(placeOf(grid, at)).toEqual({ row, column });
          const x = grid.left + (column + 0.5) * grid.cell, y = grid.top + row * grid.rowHeight + grid.cell / 2;
          expect(headUnder(grid, x - 30, y - 200, 30, 200)).toEqual(grid.sorted
            || (x - 30 >= grid.left && y - 200 >= grid.top) ? at : null);
          expect(headUnder(grid, x, y, 0, 0)).toEqual(at);
        }
    expect(headAt(plain, 2, 2)).toBeNull();
    expect(headAt(flat, flat.rows, 0)).toBeNull();
  });

  it("fits the width where cells stay large enough to see, and scrolls where not", () => {
    expect(extent(gridOf(900, 500, [12, 12], 80, null)).width).toBeLessThanOrEqual(900);
    const many = gridOf(700, 500, Array.from({ length: 32 }, () => 32), 80, null);
    expect(many.cell).toBe(28);
    expect(extent(many).width).toBeGreaterThan(700);
    const [first, last] = visibleRows(many, 28 * 5, 300);
    expect([first, last]).toEqual([5, 14]);
    expect(scrollToCell(many, 20, 31, 0, 0, 700, 300)).toEqual({ left: 80 + 32 * 28 - 700, top: 26 + 21 * 28 - 300 });
    expect(scrollToCell(many, 6, 3, 0, 140, 700, 300)).toEqual({ left: 0, top: 140 });
  });

  it("asks for pictures no finer than they are painted", () => {
    for (const [width, heads, ratio] of [[900, 12, 1], [900, 32, 1], [900, 32, 2], [2000, 4, 1]] as const) {
      const grid = gridOf(width, 500, Array.from({ length: heads }, () => heads), 80, null);
      expect(sizeOf(grid, ratio)).toBeLessThanOrEqual(Math.max(16, grid.cell * ratio));
    }
  });

  it("steps to neighbours and stops at edges", () => {
    expect(stepHead(plain, { layer: 0, head: 3 }, "ArrowRight")).toEqual({ layer: 0, head: 3 });
    // the layer below has two heads
    expect(stepHead(plain, { layer: 1, head: 3 }, "ArrowDown")).toEqual({ layer: 1, head: 3 });
    expect(stepHead(plain, { layer: 1, head: 1 }, "ArrowDown")).toEqual({ layer: 2, head: 1 });
    expect(stepHead(flat, order[6]!, "ArrowRight")).toEqual(order[7]);
    expect(stepHead(flat, order[22]!, "ArrowRight")).toEqual(order[22]);
    expect(stepHead(flat, order[1]!, "ArrowDown")).toEqual(order[1 + flat.columns]);
    expect(stepHead(plain, { layer: 0, head: 0 }, "x")).toBeNull();
  });

  it("shortens names to what tells layers apart", () => {
    expect(shortLayerNames(["layers.0.attention", "layers.1.attention"])).toEqual(["0", "1"]);
    expect(shortLayerNames(["encoder.layers.0.self_attn", "decoder.layers.0.self_attn", "decoder.layers.0.cross"]))
      .toEqual(["encoder.self_attn", "decoder.self_attn", "decoder.cross"]);
    expect(shortLayerNames(["attention"])).toEqual(["attention"]);
    expect(shortLayerNames(["a.b", "a.b"])).toHaveLength(2);
    expect(shortLayerNames(["a.0.x.y", "a.1.y"])).toEqual(["0.x", "1"]);
  });
});

describe("the pictures of heads", () => {
  const thumbs: Thumbs = {
    heads: 2, rows: 2, columns: 2, sampled: 0, max: Float32Array.of(1, 0, 0.5, 0.5, 0.2, 0, 0.1, 0.3),
    allowed: Uint8Array.of(255, 0, 255, 255, 255, 0, 100, 255),
  };

  it("are clear where nothing may be looked at, and on one scale elsewhere", () => {
    const [one, other] = [pixelsOf(thumbs, 0, "linear", 1, false), pixelsOf(thumbs, 1, "linear", 1, false)];
    expect([one[3], one[7], one[11]]).toEqual([255, 0, 255]);
    expect([...pixelsOf({ ...thumbs, max: thumbs.max.map(() => 0.5) }, 1, "linear", 1, false).slice(0,
      3)]).toEqual([...one.slice(8, 11)]);
    expect(other[7]).toBe(0);
    expect([...other.slice(0, 3)]).not.toEqual([...one.slice(0, 3)]);
  });

  it("know how much one pixel stands for", () => {
    const of = (rows: number, columns: number): Thumbs => ({ ...thumbs, rows, columns });
    expect(isPooled(of(38, 38), 300, 300)).toBe(8);
    expect(isPooled(of(12, 12), 12, 12)).toBe(1);
    expect(isPooled(of(1, 25), 3, 1537)).toBe(64);
    expect(isPooled(of(17, 4), 33, 7)).toBe(2);
  });

  it("end their scale at a round number", () => {
    expect([1, 0.37, 0.2, 0.21, 0.013, 0.0099, 0].map(roundTop)).toEqual([1, 0.5, 0.2, 0.5, 0.02, 0.01, 1]);
  });

  it("keep their shape, but are never too thin to see", () => {
    expect(boxOf(56, 10, 20)).toEqual({ x: 3, y: 15, width: 50, height: 25 });
    expect(boxOf(56, 1, 1000).height).toBe(6);
  });
});
