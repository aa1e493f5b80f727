import { describe, expect, it } from "vitest";
import { fewDigits, percent } from "../../src/paint/digits";
import { entropyOf, placeIn, strongest } from "../../src/trace/rowFacts";
import { tokenName } from "../../src/views/parts/names";
import { fake, named } from "../fake";

const words = Array.from({ length: 9 }, (_, i) => `t${i}`);

describe("a row", () => {
  it("ranks, sorts and spreads as a plain count does", async () => {
    const source = fake(words, { causal: true });
    for (let query = 0; query < words.length; query++) {
      const row = await source.row({ layer: 1, batch: 0, head: 2 }, query);
      const seen =
        [...row.weights].map((weight, key) => ({ weight, key })).filter(({ key }) => key <= query).sort((a, b) =>
        b.weight - a.weight);
      expect(strongest(row, 4).map(({ key }) => key)).toEqual(seen.slice(0, 4).map(({ key }) => key));
      seen.forEach(({ key }, i) =>
        expect(placeIn(row, key)).toMatchObject({ rank: i + 1, of: query + 1, allowed: true }));
      if (query < 8) expect(placeIn(row, 8)).toMatchObject({ allowed: false, weight: 0 });
      expect(entropyOf(row)).toBeCloseTo(-seen.reduce((sum, { weight }) => sum + weight * Math.log(weight), 0), 6);
    }
  });

  it("gives equals the same rank, the earlier first", () => {
    const row = { weights: Float32Array.of(0.25, 0.5, 0.25), scores: null, allowed: Uint8Array.of(1, 1, 1) };
    expect(placeIn(row, 2)).toEqual({ weight: 0.25, score: null, allowed: true, rank: 2, of: 3 });
    expect(strongest(row, 2)).toEqual([{ key: 1, weight: 0.5 }, { key: 0, weight: 0.25 }]);
    expect(strongest({ ...row, allowed: Uint8Array.of(0, 0, 0) }, 5)).toEqual([]);
  });
});

describe("numbers in words", () => {
  it("are short and still tell small ones apart", () => {
    expect([0.9123, 0.0512, 4.31234, 123.456, 4.2e-7, 0, -1.5].map(fewDigits))
      .toEqual(["0.912", "0.051", "4.312", "123.5", "4.2e−7", "0", "−1.500"]);
    expect([fewDigits(Infinity), fewDigits(Number.NaN), percent(0.914), percent(0.001), percent(0)]).toEqual(["∞", "–",
      "91 %", "< 1 %", "0 %"]);
  });
  it("tokens keep what cannot be seen visible, and long ones short", () => {
    expect(tokenName(named(["\u202Egnp"]), 0)).not.toContain("\u202E");
    expect(tokenName(named(["x".repeat(10_000)]), 0).length).toBeLessThan(60);
    expect(tokenName(null, 7)).toBe("7");
  });
});
