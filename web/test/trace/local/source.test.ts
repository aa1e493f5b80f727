/** Every kind of map, every question, against what Python's AttentionMap says of the same file. */
import { describe, expect, it } from "vitest";
import { openLocalSource } from "../../../src/trace/local/source";
import type { Measures, Source } from "../../../src/trace/source";
import { sidesOf } from "../../../src/trace/local/stacks";
import { Expected, apart, bytesOf } from "./read";

const kinds = openLocalSource(bytesOf("kinds.trace")), pair = openLocalSource(bytesOf("pair.trace")), long = openLocalSource(bytesOf("long.trace"));
const python = new Expected("kinds"), pythonPair = new Expected("pair"), pythonLong = new Expected("long");
const NEAR = 1e-6;

const layers = (source: Source): { name: string; layer: number }[] => source.info.layers.map(({ name }, layer) => ({ name, layer }));

/** Each head of each batch entry of a layer. */
function* heads(source: Source, layer: number): Generator<{ layer: number; batch: number; head: number }> {
  const [batches, count] = source.info.layers[layer]!.shape;
  for (let batch = 0; batch < batches; batch++) for (let head = 0; head < count; head++) yield { layer, batch, head };
}

describe("encoder and decoder", () => {
  const self = (name: string) => ({ name, kind: "self", shape: [1, 4, 7, 7] }) as const;
  it("are told apart by rows where paths do not tell; before a pooling layer all is an encoder", () => {
    const pooling = { name: "pooling", kind: "cross", shape: [1, 1, 1, 7] } as const;
    expect(sidesOf([self("blocks.0.attention"), self("blocks.1.attention"), pooling])).toEqual(["encoder", "encoder", "decoder"]);
    const cross = { name: "2", kind: "cross", shape: [1, 4, 7, 5] } as const;
    expect(sidesOf([self("0"), self("1"), cross])).toEqual(["encoder", "decoder", "decoder"]);
  });
});

describe("what is known before a number is asked", () => {
  it("comes from the last run of the file", () => {
    const { info } = kinds;
    expect([info.model, info.run, info.runs, info.notes]).toEqual(["Kinds", 1, 2, ["a note of the run"]]);
    expect(info.layers.map((layer) => layer.name)).toContain("stitched");
    expect(info.layers[0]).toMatchObject({ kind: "self", how: "computed", shape: [2, 3, 7, 7], values: true, scores: true });
    expect(info.layers.find(({ name }) => name === "stored")).toMatchObject({ how: "stored", scores: false, values: false });
    expect(openLocalSource(bytesOf("kinds.trace"), { run: 0, info: { name: "cat" } }).info).toMatchObject({ run: 0, name: "cat" });
    expect(pair.info.layers.map(({ side }) => side)).toEqual(["encoder", "encoder", "decoder", "decoder", "decoder", "decoder"]);
    expect([pair.info.precision, long.info.precision]).toEqual(["float32", "float16"]);
  });
});

describe.each([["kinds", kinds, python], ["pair", pair, pythonPair]] as const)("%s", (_, source, there) => {
  it.each(layers(source))("$name: rows, columns and the strongest keys", async ({ layer }) => {
    const [, , q, k] = source.info.layers[layer]!.shape;
    for (const at of heads(source, layer)) {
      const map = Array.from({ length: q }, (_, row) => there.at(`${layer}/weights`, at.batch, at.head, row));
      const seen = Array.from({ length: q }, (_, row) => there.at(`${layer}/allowed`, at.batch, at.head, row));
      for (let row = q - 1; row >= 0; row--) {
        const found = await source.row(at, row);
        expect(apart(found.weights, map[row]!)).toBeLessThan(NEAR);
        expect([...found.allowed]).toEqual(seen[row]);
        if (there.has(`${layer}/scores`))
          expect(apart(found.scores!, there.at(`${layer}/scores`, at.batch, at.head, row))).toBeLessThan(5e-6);
      }
      for (let key = 0; key < k; key++) {
        const found = await source.column(at, key);
        expect(apart(found.weights, map.map((row) => row[key]!))).toBeLessThan(NEAR);
        expect([...found.allowed]).toEqual(seen.map((row) => row[key]!));
      }
      const top = await source.top(at, 1, q - 1, 3);
      for (let row = 1; row < q; row++) {
        const best = map[row]!.map((weight, key) => ({ weight, key })).filter(({ key }) => seen[row]![key]);
        best.sort((a, b) => b.weight - a.weight || a.key - b.key);
        const some = top.weights.subarray((row - 1) * 3, row * 3);
        expect(apart(some, [0, 1, 2].map((i) => best[i]?.weight ?? 0))).toBeLessThan(NEAR);
        [...top.keys.subarray((row - 1) * 3, row * 3)].forEach((key, i) => {
          if (key >= 0) expect(Math.abs(map[row]![key]! - some[i]!)).toBeLessThan(NEAR);
        });
      }
    }
  });

  it.each(layers(source))("$name: tiles of every level, small pictures, and who sees nothing", async ({ layer }) => {
    const [, count, q, k] = source.info.layers[layer]!.shape;
    for (const at of heads(source, layer)) {
      const cell = (row: number, key: number): { w: number; a: number } => ({
        w: there.at(`${layer}/weights`, at.batch, at.head, row)[key]!, a: there.at(`${layer}/allowed`, at.batch, at.head, row)[key]!,
      });
      for (const level of [0, 1, 2]) {
        const size = 2 ** level;
        const tile = await source.tile({ ...at, level, row: 0, column: 0 }, false);
        expect([tile.rows, tile.columns, tile.sampled]).toEqual([Math.ceil(q / size), Math.ceil(k / size), 0]);
        for (let row = 0; row < tile.rows; row++)
          for (let column = 0; column < tile.columns; column++) {
            const inside = [];
            for (let i = row * size; i < Math.min(q, (row + 1) * size); i++)
              for (let j = column * size; j < Math.min(k, (column + 1) * size); j++) inside.push(cell(i, j));
            const open = inside.filter(({ a }) => a).map(({ w }) => w);
            const counted = open.length ? open : inside.map(({ w }) => w); // a row that sees nothing may still be uniform
            const here = row * tile.columns + column;
            expect(Math.abs(tile.max[here]! - Math.max(...inside.map(({ w }) => w)))).toBeLessThan(NEAR);
            expect(Math.abs(tile.mean[here]! - counted.reduce((x, y) => x + y, 0) / counted.length)).toBeLessThan(NEAR);
            const share = tile.allowed[here]!;
            expect(share === 0).toBe(open.length === 0);
            expect(share === 255).toBe(open.length === inside.length);
          }
        const coarse = await openLocalSource(bytesOf(source === kinds ? "kinds.trace" : "pair.trace")).tile({ ...at, level, row: 0, column: 0 }, true);
        expect(coarse.sampled).toBe(level ? size : 0);
        const middle = Math.min(size, q) >> 1;
        expect(Math.abs(coarse.max[0]! - Math.max(0, ...Array.from({ length: Math.min(size, k) }, (_, j) => cell(middle, j)).map(({ w }) => w)))).toBeLessThan(NEAR);
      }
      const hidden = await source.hidden(at);
      const seen = Array.from({ length: q }, (_, row) => there.at(`${layer}/allowed`, at.batch, at.head, row));
      expect([...hidden.blind]).toEqual(seen.map((row) => Number(!row.some(Boolean))));
      expect([...hidden.unseen]).toEqual(seen[0]!.map((_, key) => Number(!seen.some((row) => row[key]))));
    }
    const small = await source.thumbs(layer, 0, 4);
    const level = Math.ceil(Math.log2(Math.max(q, k) / 4));
    expect([small.heads, small.rows, small.sampled]).toEqual([count, Math.ceil(q / 2 ** Math.max(0, level)), 0]);
    const last = await source.tile({ layer, batch: 0, head: count - 1, level: Math.max(0, level), row: 0, column: 0 }, false);
    expect([...small.max.subarray((count - 1) * small.rows * small.columns)]).toEqual([...last.max]);
  });

  it.each(layers(source))("$name: the numbers of every cell, from q and k to the mix", async ({ layer }) => {
    const [, , q, k] = source.info.layers[layer]!.shape;
    for (const at of heads(source, layer)) {
      const numbers = await source.numbers(at, q - 1, 0);
      expect([numbers.rows.length, numbers.columns.length]).toEqual([q, k]);
      expect(apart(numbers.weights, there.at(`${layer}/weights`, at.batch, at.head))).toBeLessThan(NEAR);
      expect(Math.max(...numbers.rest)).toBe(0);
      if (there.has(`${layer}/mix`)) expect(apart(numbers.mix!, there.at(`${layer}/mix`, at.batch, at.head))).toBeLessThan(5e-6);
      else expect(numbers.mix).toBeNull();
      if (!there.has(`${layer}/scores`)) continue;
      expect(apart(numbers.scores!, there.at(`${layer}/scores`, at.batch, at.head))).toBeLessThan(5e-6);
      numbers.weights.forEach((weight, cell) => {
        const row = Math.floor(cell / k), { total, highest, scores, allowed, softcap, scale, dot, bias } = numbers;
        if (total![row] === 0) return;
        const power = allowed[cell] ? Math.exp(scores![cell]! - highest![row]!) : 0;
        expect(Math.abs(power / total![row]! - weight)).toBeLessThan(NEAR);
        const scaled = dot![cell]! * scale;
        const capped = softcap === null ? scaled : softcap * Math.tanh(scaled / softcap);
        const score = capped + (bias?.[cell] ?? 0);
        if (Number.isFinite(score)) expect(Math.abs(score - scores![cell]!)).toBeLessThan(5e-6);
      });
    }
  });

  it.each(layers(source))("$name: measures", async ({ layer }) => {
    for (let batch = 0; batch < source.info.layers[layer]!.shape[0]; batch++) {
      const theirs = there.facts.measures[layer]![batch]!, ours = await source.measures(layer, batch);
      expect(Object.keys(ours.values).sort()).toEqual(Object.keys(theirs.values).sort());
      for (const [name, values] of Object.entries(theirs.values)) {
        const found = ours.values[name]!;
        expect(found.map((x) => x === null), name).toEqual(values.map((x) => x === null));
        expect(apart(found.map((x) => x ?? 0), values.map((x) => x ?? 0)), name).toBeLessThan(2e-6);
      }
      expect([...ours.notes].sort()).toEqual([...theirs.notes].sort());
    }
  });
});

describe("flow", () => {
  it.each(["weights", "values"] as const)("through encoder and decoder, by %s", async (by) => {
    const found = await pair.flow({ query: 1, batch: 0, residual: 0.3, by });
    expect([found.lines, found.n, found.m]).toEqual([7, 3, 4]);
    expect(apart(found.target, pythonPair.at(`flow/${by}/target`))).toBeLessThan(NEAR);
    expect(apart(found.source!, pythonPair.at(`flow/${by}/source`))).toBeLessThan(NEAR);
    expect(pair.info.tokens[found.targetTokens]!.shown).toEqual(["<s>", "猫", "坐"]);
    expect(pair.info.tokens[found.sourceTokens]!.shown[1]).toBe("cat");
  });

  it("says in a sentence why it cannot be", async () => {
    await expect(kinds.flow({ query: 0, batch: 0, residual: 0.5, by: "weights" })).rejects.toThrow(/saw a batch of|queries and/);
    await expect(pair.flow({ query: 9, batch: 0, residual: 0.5, by: "weights" })).rejects.toThrow("Token 9 was asked for");
  });
});

describe("a longer map in float16", () => {
  it("is what Python makes of the same float16 numbers", async () => {
    for (const head of [0, 1]) {
      const at = { layer: 0, batch: 0, head };
      for (const [i, row] of [0, 1, 150, 299].entries())
        expect(apart((await long.row(at, row)).weights, pythonLong.at("rows", head, i))).toBeLessThan(NEAR);
      const tile = await long.tile({ ...at, level: 4, row: 0, column: 0 }, false);
      expect(apart(tile.max, pythonLong.at("max", head))).toBeLessThan(NEAR);
      expect(apart(tile.mean, pythonLong.at("mean", head))).toBeLessThan(NEAR);
    }
  });

  it("has smaller tiles at its edges, and none beyond", async () => {
    const at = { layer: 0, batch: 0, head: 1, level: 0 };
    const corner = await long.tile({ ...at, row: 1, column: 1 }, false);
    expect([corner.rows, corner.columns]).toEqual([44, 44]);
    const row = await long.row(at, 299);
    expect(apart(corner.max.subarray(43 * 44), row.weights.subarray(256))).toBeLessThan(1e-7);
    await expect(long.tile({ ...at, row: 2, column: 0 }, false)).rejects.toThrow("There is no tile 2, 0");
  });

  it("shows the row in hand, its ten strongest keys and the key in hand", async () => {
    const at = { layer: 0, batch: 0, head: 0 };
    const numbers = await long.numbers(at, 200, 7), row = await long.row(at, 200), top = await long.top(at, 200, 1, 10);
    expect([...numbers.rows]).toEqual([200]);
    expect([...numbers.columns]).toEqual([...new Set([...top.keys, 7])].sort((a, b) => a - b));
    const shown = numbers.weights.reduce((a, b) => a + b, 0);
    expect(Math.abs(shown + numbers.rest[0]! - 1)).toBeLessThan(NEAR);
    expect(numbers.weights[[...numbers.columns].indexOf(7)]).toBe(row.weights[7]);
  });

  it("stops when nobody waits any more", async () => {
    const stop = new AbortController();
    stop.abort();
    await expect(long.tile({ layer: 0, batch: 0, head: 0, level: 0, row: 0, column: 1 }, false, stop.signal)).rejects.toMatchObject({ name: "AbortError" });
  });
});

describe("what was made in Python", () => {
  it("is told as it came", async () => {
    const measures: Measures = { values: { entropy: [1, 2] }, notes: [] };
    const proof = { status: "verified", output: 1, kernel: 2, normaliser: null, ulp: null, why: "" } as const;
    const source = openLocalSource(bytesOf("long.trace"), { proofs: [proof], measures: [[measures]], info: { error: 0.25 } });
    expect([await source.proof(0), await source.measures(0, 0), source.info.error]).toEqual([proof, measures, 0.25]);
    expect(await long.proof(0)).toMatchObject({ status: "unverified" });
  });

  it("gives the kernel's own row where one was copied", async () => {
    const numbers = await kinds.numbers({ layer: 0, batch: 1, head: 2 }, 6, 0);
    expect([...numbers.kernel!]).toEqual([44, 45, 46, 47]);
    expect((await kinds.numbers({ layer: 0, batch: 1, head: 2 }, 5, 0)).kernel).toBeNull();
  });
});
