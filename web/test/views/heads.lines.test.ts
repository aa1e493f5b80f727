import { describe, expect, it } from "vitest";
import { Blocks } from "../../src/views/heads/blocks";
import { shownHeads, toggleHead } from "../../src/views/heads/chips";
import { columns } from "../../src/views/heads/layout";
import { hiddenKeys, howMany, linesOf, meanHidden, strongest } from "../../src/views/heads/lines";
import { bundles, strands } from "../../src/views/heads/paint";
import { type Fake, fake } from "../fake";

const words = (n: number): string[] => Array.from({ length: n }, (_, i) => `w${i}`);

/** Lines by plain loops over whole rows. */
function expected(source: Fake, head: number, first: number, last: number, without: readonly number[],
  threshold: number) {
  const found: { query: number; key: number; head: number; weight: number }[] = [];
  for (let query = first; query <= last; query++) {
    const row = source.weightsOf({ layer: 1, batch: 0, head }, query);
    const left = 1 - without.reduce((sum, key) => sum + row[key]!, 0);
    row.forEach((weight, key) => {
      if (!without.includes(key) && weight > 0 && weight / left >= threshold) found.push({ query, key, head,
        weight: weight / left });
    });
  }
  return found.sort((a, b) => a.query - b.query || a.key - b.key);
}

/** Lines as the view finds them: asked, waited for, asked again. */
async function asked(source: Fake, n: number, without: readonly number[], threshold: number, first: number,
  last: number) {
  const { count } = howMany(n, threshold, without.length);
  const blocks = new Blocks(source, () => undefined, new AbortController().signal);
  const wanted = [{ at: { layer: 1, batch: 0, head: 2 }, queries: n, keys: n, count, without }];
  blocks.of(wanted, first, last);
  while (blocks.busy) await new Promise((done) => setTimeout(done, 1));
  const here = blocks.of(wanted, first, last).get(2)!;
  const lines = here.flatMap((block) => linesOf(block, 2, first, last, new Set(without), threshold));
  return { lines: lines.sort((a, b) => a.query - b.query || a.key - b.key), hidden: meanHidden(here, first, last),
    count };
}

describe("lines", () => {
  it.each([
    [70, [], 0.05], [70, [0], 0.05], [130, [0], 0.02], [130, [0, 64, 129], 0.03], [13, [0], 0.001],
    [130, Array.from({ length: 40 }, (_, i) => 3 * i), 0.02], // many hidden keys: read by rows
  ] as const)("of %i tokens without %j from %f on are those of the whole rows", async (n, without, threshold) => {
    const source = fake(words(n), { causal: true });
    const [first, last] = [Math.min(60, n - 5), n - 1];
    const found = await asked(source, n, without, threshold, first, last);
    const wanted = expected(source, 2, first, last, without, threshold);
    expect(found.lines.map(({ query, key }) => [query, key])).toEqual(wanted.map(({ query, key }) => [query, key]));
    found.lines.forEach((line, i) => expect(line.weight).toBeCloseTo(wanted[i]!.weight, 5));
    if (without.length === 0) expect(found.hidden).toBeNull();
    else {
      let sum = 0;
      for (let query = first; query <= last; query++)
        for (const key of without) sum += source.weightsOf({ layer: 1, batch: 0, head: 2 }, query)[key]!;
      expect(found.hidden).toBeCloseTo(sum / (last - first + 1), 5);
    }
  });

  it("draws nothing of a row that is hidden whole", () => {
    const top = { first: 0, queries: 1, count: 2, weights: Float32Array.of(1, 0), keys: Int32Array.of(0, 1) };
    expect(linesOf({ top, hidden: Float32Array.of(1) }, 0, 0, 0, new Set([0]), 0)).toEqual([]);
  });

  it("asks for enough keys, and says when it cannot", () => {
    expect(howMany(1000, 0.05, 0)).toEqual({ count: 32, whole: true });
    expect(howMany(1000, 0.01, 3)).toEqual({ count: 103, whole: true });
    expect(howMany(1000, 0.001, 0)).toEqual({ count: 256, whole: false });
    expect(howMany(200, 0, 5)).toEqual({ count: 200, whole: true });
    expect(howMany(10, 0.5, 0)).toEqual({ count: 10, whole: true });
  });

  it("leaves out special tokens, or the first key where none is special", () => {
    expect(hiddenKeys(5, (key) => key === 0 || key === 4)).toEqual([0, 4]);
    expect(hiddenKeys(5, () => false)).toEqual([0]);
    expect(hiddenKeys(0, () => false)).toEqual([]);
  });

  it("are asked for what is seen, and called off when it is seen no more", async () => {
    const source = fake(words(200)), calls: { first: number; aborted: () => boolean }[] = [];
    source.top = (_at, first, _queries, _count, signal?: AbortSignal) => {
      calls.push({ first, aborted: () => signal!.aborted });
      return new Promise(() => undefined);
    };
    const blocks = new Blocks(source, () => undefined, new AbortController().signal);
    const wanted = [{ at: { layer: 0, batch: 0, head: 0 }, queries: 200, keys: 200, count: 32, without: [] }];
    blocks.of(wanted, 10, 20);
    blocks.of(wanted, 11, 21);
    blocks.of(wanted, 130, 140);
    expect(calls.map(({ first }) => first)).toEqual([0, 128]);
    expect(calls.map(({ aborted }) => aborted())).toEqual([true, false]);
  });

  it("that could not be asked leave an error and are not asked for ever", async () => {
    const source = fake(words(9));
    let calls = 0;
    source.top = async () => {
      calls++;
      throw new Error("the server is gone");
    };
    const blocks = new Blocks(source, () => undefined, new AbortController().signal);
    const wanted = [{ at: { layer: 0, batch: 0, head: 0 }, queries: 9, keys: 9, count: 9, without: [] }];
    for (let i = 0; i < 3; i++) {
      blocks.of(wanted, 0, 8);
      await new Promise((done) => setTimeout(done, 2));
    }
    expect(calls).toBe(1);
    expect(String(blocks.error)).toContain("the server is gone");
    expect(blocks.busy).toBe(false);
  });
});

describe("strokes", () => {
  const weightOf = (i: number): number => ((i * 37) % 100) / 100;
  const lines = Array.from({ length: 300 }, (_, i) => ({ query: i % 7, key: i, head: i % 3, weight: weightOf(i) }));
  const sight = { width: 900, height: 330, row: 24, scroll: 0, queries: 7, keys: 300, ...columns(900, 80, 120) };

  it("hold every line once; those that fade lie below the veil, and what is in hand on top of either", () => {
    const found = bundles({ sight, lines, lit: { query: 3, key: null, head: null } });
    expect(found.flatMap((bundle) => bundle.lines).sort((a, b) => a.key - b.key)).toEqual(lines);
    expect(found.length).toBeLessThan(130);
    const faded = found.filter((bundle) => bundle.outside).length;
    expect(found.slice(0, faded).every((bundle) => bundle.outside)).toBe(true);
    for (const some of [found.slice(0, faded), found.slice(faded)]) {
      const lit = some.slice(some.findIndex((bundle) => bundle.lit));
      expect(lit.length).toBeGreaterThan(0);
      expect(lit.every((bundle) => bundle.lit && bundle.lines.every((line) => line.query === 3))).toBe(true);
    }
    for (const { outside, lines: some } of found) expect(some.every((line) => line.key > 12 === outside)).toBe(true);
  });

  it("are of the strongest lines while one scrolls", () => {
    const few = strongest(lines, 50), least = Math.min(...few.map((line) => line.weight));
    expect(few).toHaveLength(50);
    expect(lines.filter((line) => line.weight > least).every((line) => few.includes(line))).toBe(true);
    expect(strongest(lines, 300)).toBe(lines);
  });

  it("are made of strands of one pixel then, as many as the line is wide", () => {
    expect(strands(3.1, null)).toEqual([0]);
    expect(strands(0.6, 1)).toEqual([0]);
    expect(strands(2, 1)).toEqual([-0.5, 0.5]);
    expect(strands(1.4, 0.5)).toEqual([-0.5, 0, 0.5]); // a sharp screen has two pixels there
  });
});

describe("chips", () => {
  it("show the head in hand where none is chosen", () => {
    expect(shownHeads({ head: 3, heads: [] }, 4)).toEqual([3]);
    expect(shownHeads({ head: 9, heads: [7, 2, 2] }, 4)).toEqual([2]);
    expect(shownHeads({ head: 9, heads: [] }, 4)).toEqual([3]);
    expect(shownHeads({ head: 0, heads: [] }, 0)).toEqual([]);
  });

  it("toggle heads, and the last one stays", () => {
    expect(toggleHead({ head: 1, heads: [] }, 4, 3)).toEqual({ head: 3, heads: [1, 3] });
    expect(toggleHead({ head: 3, heads: [1, 3] }, 4, 3)).toEqual({ head: 1, heads: [] });
    expect(toggleHead({ head: 0, heads: [1, 3] }, 4, 3)).toEqual({ head: 1, heads: [] });
    expect(toggleHead({ head: 1, heads: [] }, 4, 1)).toEqual({ head: 1, heads: [] });
    expect(toggleHead({ head: 0, heads: [0, 1, 2] }, 4, 1)).toEqual({ head: 0, heads: [0, 2] });
  });
});
