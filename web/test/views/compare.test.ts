import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Choice, FIRST } from "../../src/choose/choice";
import { LIGHT } from "../../src/paint/theme";
import { say } from "../../src/language/language";
import type { Source } from "../../src/trace/source";
import { compare } from "../../src/views/compare/compare";
import { EXACT, differenceOf } from "../../src/views/compare/difference";
import { pairOf } from "../../src/views/compare/pair";
import { fake } from "../fake";

const words = (n: number, mark = "w"): string[] => Array.from({ length: n }, (_, i) => `${mark}${i}`);
const AT = { layer: 1, batch: 0, head: 2 };
let stop: AbortController;
beforeEach(() => { stop = new AbortController(); });
afterEach(() => { stop.abort(); document.body.replaceChildren(); });

describe("the difference of two maps", () => {
  const a = fake(words(7), { causal: true }), b = fake(words(7), { d: 3 });
  const exact = Array.from(
    { length: 7 }, (_, i) => b.weightsOf(AT, i).map((weight, j) => weight - a.weightsOf(AT, i)[j]!),
  );

  it("is B − A, weight by weight; what only one may look at counts as zero in the other", async () => {
    const tile = await differenceOf(a, b, [7, 7]).tile({ ...AT, level: 0, row: 0, column: 0 }, false);
    exact.flat().forEach((value, cell) => expect(tile.max[cell]).toBeCloseTo(value, 6));
    expect([...tile.allowed].every((share) => share === 255)).toBe(true); // B may look everywhere
  });

  it("keeps the largest difference with its sign when it is seen from farther", async () => {
    const tile = await differenceOf(a, b, [7, 7]).tile({ ...AT, level: 1, row: 0, column: 0 }, false);
    expect([tile.rows, tile.columns]).toEqual([4, 4]);
    for (let row = 0; row < 4; row++)
      for (let column = 0; column < 4; column++) {
        const cells = [0, 1].flatMap(
          (i) => [0, 1].map((j) => exact[2 * row + i]?.[2 * column + j])
        ).filter((value) => value !== undefined);
        const most = cells.reduce((best, value) => (Math.abs(value) > Math.abs(best) ? value : best), 0);
        expect(tile.max[row * 4 + column]).toBeCloseTo(most, 6);
        expect(tile.mean[row * 4 + column]).toBeCloseTo(cells.reduce((x, y) => x + y) / cells.length, 6);
      }
  });

  it("knows the largest difference, its place, and the mean size", async () => {
    const facts = await differenceOf(a, b, [7, 7]).facts(AT);
    const flat = exact.flat(), sizes = flat.map(Math.abs), most = Math.max(...sizes);
    expect(Math.abs(facts.largest)).toBeCloseTo(most, 6);
    expect(exact[facts.query]![facts.key]).toBeCloseTo(facts.largest, 6);
    expect(facts.mean).toBeCloseTo(sizes.reduce((x, y) => x + y) / 49, 6);
    expect(facts.size).toBe(1);
  });

  it("over many tiles finds the same as plain loops", async () => {
    const one = fake(
      words(260), { layers: 1, heads: 1, d: 2 },
    ), two = fake(words(260), { layers: 1, heads: 1, d: 3 }), at = { layer: 0, batch: 0, head: 0 };
    const facts = await differenceOf(one, two, [260, 260]).facts(at);
    const mine = Math.max(
      ...words(260).flatMap(
        (_, i) => {
          const [x, y] = [one.weightsOf(at, i), two.weightsOf(at, i)];
          return x.map((weight, j) => Math.abs(y[j]! - weight));
        }
      )
    );
    expect(Math.abs(facts.largest)).toBeCloseTo(mine, 6);
    expect(
      Math.abs(two.weightsOf(at, facts.query)[facts.key]! - one.weightsOf(at, facts.query)[facts.key]!)
    ).toBeCloseTo(mine, 6);
  });

  it("of maps that are too large is the difference of means, and says so", async () => {
    const n = EXACT + 1, cells = 129 * 129;
    const flat = (value: number) => (
      {
        rows: 129, columns: 129, max: new Float32Array(cells).fill(9), mean: new Float32Array(cells).fill(value),
        allowed: new Uint8Array(cells).fill(255), sampled: 0,
      }
    );
    const side = (value: number): Source => Object.assign(
      Object.create(fake(["x"])) as Source, { tile: async () => flat(value) },
    );
    const difference = differenceOf(side(0.25), side(0.75), [n, n]);
    expect(difference.exact).toBe(false);
    expect((await difference.tile({ ...AT, level: 3, row: 0, column: 0 }, false)).max[5]).toBe(0.5);
    expect(await difference.facts(AT)).toMatchObject({ largest: 0.5, mean: 0.5, size: 8 });
  });
});

describe("a pair", () => {
  const a = fake(words(5)).info;
  it("says why there is no difference", () => {
    expect(pairOf(a, fake(words(5)).info, AT)).toMatchObject(
      { exists: true, shape: [5, 5], tokens: false, names: null }
    );
    expect(pairOf(a, fake(words(5, "v")).info, AT).tokens).toBe(true);
    const longer = pairOf(a, fake(words(8)).info, AT);
    expect(longer.shape).toBeNull();
    expect(longer.why(say)).toContain("5 queries × 5 keys, B has 8 × 8");
    const shallow = pairOf(a, fake(words(5), { layers: 1 }).info, AT);
    expect(shallow.exists).toBe(false);
    expect(shallow.why(say)).toContain("no layer 1 with head 2");
    expect(pairOf(a, fake(words(5), { heads: 2 }).info, AT).exists).toBe(false);
  });
});

describe("compare", () => {
  const shown = async (other: Source | null) => {
    const el = document.body.appendChild(document.createElement("div"));
    const choice = new Choice({ ...FIRST, view: "compare", layer: AT.layer, head: AT.head });
    const view = compare(
      { el, source: fake(words(7)), other, choice, say, theme: () => LIGHT, server: null, signal: stop.signal }
    );
    for (let i = 0; i < 60; i++) await Promise.resolve();
    return { el, choice, view };
  };
  it("says how to choose a second trace when there is none", async () => {
    expect((await shown(null)).el.textContent).toContain("Choose a second trace");
  });
  it("jumps to the largest difference when it is clicked", async () => {
    const { el, choice } = await shown(fake(words(7), { d: 3 }));
    const { facts } = (el as unknown as { regard: { facts(): { query: number; key: number } } }).regard;
    el.querySelector<HTMLElement>('[data-do="jump"]')!.click();
    expect(choice.picked.value).toMatchObject({ query: facts().query, key: facts().key });
    expect(el.querySelectorAll("[data-side]")).toHaveLength(3);
  });
  it("shows both sides without a difference when shapes differ, and only A where B has no such head", async () => {
    expect(
      [...(await shown(fake(words(9)))).el.querySelectorAll("[data-side]")].map((one) => one.getAttribute("data-side"))
    ).toEqual(["a", "b"]);
    const { el } = await shown(fake(words(7), { heads: 1 }));
    expect(el.querySelectorAll("[data-side]")).toHaveLength(1);
    expect(el.textContent).toContain("no layer 1 with head 2");
  });
  it("says that equal maps are equal, and what failed", async () => {
    expect((await shown(fake(words(7)))).el.textContent).toContain("have equal weights everywhere");
    const broken = Object.assign(
      Object.create(fake(words(7))) as Source, { tile: () => Promise.reject(new Error("lost")) },
    );
    expect((await shown(broken)).el.querySelector('.facts [role="alert"]')!.textContent).toContain("lost");
  });
  it("gives a table of both sides", async () => {
    const other = fake(words(7), { d: 3 }), { view } = await shown(other);
    const table = await view.table!();
    expect(table).toHaveLength(1 + 49);
    const [query, key, a, b, difference] = table[10] as number[];
    expect(b).toBeCloseTo(other.weightsOf(AT, query!)[key!]!, 6);
    expect(difference).toBeCloseTo(b! - a!, 7);
  });
});
