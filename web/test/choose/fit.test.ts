import { describe, expect, it } from "vitest";
import { FIRST, type Selection } from "../../src/choose/choice";
import { carry, fit, fitZoom } from "../../src/choose/fit";
import { translation } from "../../preview/fakes";
import { fake, numbersFrom } from "../fake";

const info = fake(["a", "b", "c", "d", "e"], { layers: 3, heads: 4 }).info;
const picked = (part: Partial<Selection>): Selection => ({ ...FIRST, ...part });

describe("fit", () => {
  it("leaves what fits as the very same object", () => {
    const good =
      picked({ layer: 2, head: 3, heads: [0, 2], query: 4, key: 0, zoom: { left: 1, top: 1, right: 3, bottom: 4 } });
    expect(fit(good, info)).toBe(good);
  });

  it("brings whatever comes inside the trace", () => {
    const draw = numbersFrom(3);
    const wild = (): number =>
      [draw() * 1e9, Math.round(draw() * 20), Number.NaN, Infinity, -0.5][Math.floor((draw() + 1) * 2.5)]!;
    for (let i = 0; i < 500; i++) {
      const found = fit(picked({
        layer: wild(), head: wild(), batch: wild(), heads: [wild(), wild(), wild()], query: wild(), key: wild(),
        zoom: { left: wild(), top: wild(), right: wild(), bottom: wild() },
      }), info);
      const { shape } = info.layers[found.layer]!;
      expect(found.head).toBeLessThan(shape[1]);
      expect(found.batch).toBe(0);
      for (const head of found.heads) expect(head >= 0 && head < shape[1] && Number.isInteger(head)).toBe(true);
      for (const [place, size] of [[found.query, shape[2]], [found.key, shape[3]]] as const)
        expect(place === null || (Number.isInteger(place) && place >= 0 && place < size)).toBe(true);
      const { zoom } = found;
      if (zoom !== null) expect(zoom.left >= 0 && zoom.right <= 5 && zoom.left < zoom.right &&
        zoom.top < zoom.bottom).toBe(true);
      expect(fit(found, info)).toBe(found);
    }
  });

  it("gives a place even in a trace without layers", () => {
    expect(fit(picked({ layer: 7, query: 3 }), { ...info, layers: [] })).toMatchObject({ layer: 0, head: 0,
      query: null });
  });

  it("takes a zoom over everything for none", () => {
    expect(fitZoom({ left: -2, top: 0, right: 99, bottom: 5 }, 5, 5)).toBeNull();
    expect(fitZoom({ left: 9, top: 9, right: 12, bottom: 12 }, 5, 5)).toBeNull();
  });
});

describe("carry", () => {
  const both = translation("t", ["The", "cat", "sat"], ["猫", "坐", "着", "。"], 2, 3).info;
    // 0, 1: encoder; 2, 4: decoder; 3, 5: cross
  it("keeps query and key between layers of the same tokens", () => {
    const before = picked({ layer: 0, query: 1, key: 2 });
    expect(carry({ ...before, layer: 1 }, before, both)).toMatchObject({ layer: 1, query: 1, key: 2 });
  });
  it("lets go of what would mean another token", () => {
    const before = picked({ layer: 2, query: 1, key: 2, zoom: { left: 0, top: 0, right: 2, bottom: 2 } });
    expect(carry({ ...before, layer: 3 }, before, both)).toMatchObject({ query: 1, key: null, zoom: null });
      // the same queries
    expect(carry({ ...before, layer: 0 }, before, both)).toMatchObject({ query: null, key: null });
  });
  it("keeps what is picked together with the layer", () => {
    const before = picked({ layer: 0, query: 1 });
    expect(carry({ ...before, layer: 3, query: 2, key: 0 }, before, both)).toMatchObject({ query: 2, key: 0 });
  });
});
