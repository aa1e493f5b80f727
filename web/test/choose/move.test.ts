import { describe, expect, it } from "vitest";
import { FIRST, type Selection } from "../../src/choose/choice";
import { attentionOf, sameAttention, step, stepHead, stepLayer, zoomBy } from "../../src/choose/move";
import { translation } from "../../preview/fakes";
import { fake } from "../fake";

const info = fake(Array.from({ length: 11 }, (_, i) => `t${i}`), { layers: 3, heads: 5 }).info;
const picked = (part: Partial<Selection>): Selection => ({ ...FIRST, ...part });

describe("step", () => {
  it("begins at the first cell in sight", () => {
    expect(step(picked({}), info, 1, 0)).toMatchObject({ query: 0, key: null });
    expect(step(picked({ zoom: { left: 2.5, top: 3.5, right: 8, bottom: 9 } }), info, 0, 1)).toMatchObject({ query: 4,
      key: 3 });
  });
  it("stays on the map", () => {
    expect(step(picked({ query: 10, key: 0 }), info, 1, 0)).toMatchObject({ query: 10, key: 0 });
    expect(step(picked({ query: 10, key: 0 }), info, 0, -1)).toMatchObject({ query: 10, key: 0 });
  });
  it("takes the zoom along when it leaves it", () => {
    const zoom = { left: 0, top: 0, right: 4, bottom: 4 };
    expect(step(picked({ query: 3, key: 1, zoom }), info, 1, 0)).toMatchObject({ query: 4,
      zoom: { top: 1, bottom: 5, left: 0, right: 4 } });
    expect(step(picked({ query: 2, key: 1, zoom }), info, 1, 0).zoom).toEqual(zoom);
  });
});

describe("heads and layers", () => {
  it("stop at the ends", () => {
    expect(stepHead(picked({ head: 4 }), info, 1).head).toBe(4);
    expect(stepHead(picked({ head: 4 }), info, -1).head).toBe(3);
    expect(stepLayer(picked({ layer: 2 }), info, 1).layer).toBe(2);
  });
  it("keep to one attention", () => {
    const both = translation("t", ["a", "b"], ["c", "d", "e"], 2, 3).info;
    expect(both.layers.map(attentionOf)).toEqual(["self·encoder", "self·encoder", "self·decoder", "cross",
      "self·decoder", "cross"]);
    expect(sameAttention(both, 3)).toEqual([3, 5]);
    expect(stepLayer(picked({ layer: 3 }), both, 1).layer).toBe(5);
    expect(stepLayer(picked({ layer: 4 }), both, -1).layer).toBe(2);
  });
});

describe("zoomed", () => {
  it("comes nearer around what is picked and goes back to all of it", () => {
    let now = picked({ query: 9, key: 1 });
    for (let i = 0; i < 12; i++) {
      now = { ...now, ...zoomBy(now, info, 1.5) };
      const zoom = now.zoom!;
      expect(zoom.left <= 1 && zoom.right >= 2 && zoom.top <= 9 && zoom.bottom >= 10).toBe(true);
      expect(zoom.left >= 0 && zoom.right <= 11 && zoom.right - zoom.left).toBeGreaterThanOrEqual(2 - 1e-9);
    }
    for (let i = 0; i < 12; i++) now = { ...now, ...zoomBy(now, info, 1 / 1.5) };
    expect(now.zoom).toBeNull();
  });
});
