import { describe, expect, it } from "vitest";
import {
  clampCamera, isWhole, levelOf, panCamera, overviewLevel, reboxCamera, visiblePart, cameraShowing, tilesIn, cameraOf, cellUnder, wholeCamera, xOf, yOf,
  zoomCamera,
} from "../../src/views/map/geometry";
import { hitAt } from "../../src/views/map/hit";
import { stepSelection } from "../../src/views/map/keyboard";
import { axesOf, niceStep, roomsOf } from "../../src/views/map/axes";
import { axisNames } from "../../src/views/map/names";
import { LIGHT } from "../../src/paint/theme";
import type { Tokens } from "../../src/trace/source";

const shape = { queries: 300, keys: 500 }, box = { x: 70, y: 40, width: 900, height: 600 };

describe("the camera", () => {
  it("shows all of the map, square and in the middle", () => {
    const camera = wholeCamera(shape, box);
    expect(camera.stretch).toBe(1);
    expect(camera.scale).toBeCloseTo(1.8);
    expect(visiblePart(camera, shape, box)).toEqual({ left: 0, top: 0, right: 500, bottom: 300 });
    const small = wholeCamera({ queries: 6, keys: 6 }, box);
    expect(small.scale).toBe(64);
    expect(xOf(small, box, 3)).toBeCloseTo(box.x + box.width / 2);
    expect(yOf(small, box, 0)).toBe(box.y);
  });
  it("stretches a map of one row or column until it can be seen", () => {
    const flat = wholeCamera({ queries: 1, keys: 300 }, box);
    expect(flat.scale).toBeCloseTo(3);
    expect(flat.scale * flat.stretch).toBeCloseTo(24);
    const narrow = wholeCamera({ queries: 300, keys: 4 }, box);
    expect(narrow.scale).toBeCloseTo(24);
    expect(narrow.scale * narrow.stretch).toBeCloseTo(2);
    expect(visiblePart(narrow, { queries: 300, keys: 4 }, box).bottom).toBeCloseTo(300);
  });
  it("keeps what is under the pointer there while it zooms, and never leaves the map", () => {
    let camera = wholeCamera(shape, box);
    const at = { x: 400, y: 300 }, first = cellUnder(camera, shape, box, at.x, at.y)!;
    for (let i = 0; i < 30; i++) {
      camera = zoomCamera(camera, 1.3, at.x, at.y, shape, box);
      expect(cellUnder(camera, shape, box, at.x, at.y)).toEqual(first);
    }
    expect(camera.scale).toBe(112);
    for (const [dx, dy] of [[1e6, 1e6], [-1e6, -1e6]] as const) {
      const { left, right, top, bottom } = visiblePart(panCamera(camera, dx, dy, shape, box), shape, box);
      expect(right - left).toBeCloseTo(box.width / 112);
      expect(bottom - top).toBeCloseTo(box.height / 112);
    }
    for (let i = 0; i < 60; i++) camera = zoomCamera(camera, 0.7, 100, 100, shape, box);
    expect(camera).toEqual(wholeCamera(shape, box));
    expect(isWhole(camera, shape, box)).toBe(true);
  });
  it("comes back to a part that was written down, and refuses nonsense", () => {
    const camera = clampCamera({ left: 120, top: 80, scale: 20, stretch: 1 }, shape, box);
    const again = cameraOf(visiblePart(camera, shape, box), shape, box);
    expect(again.left).toBeCloseTo(camera.left);
    expect(again.top).toBeCloseTo(camera.top);
    expect(again.scale).toBeCloseTo(camera.scale);
    for (const zoom of [null, { left: 5, right: 5, top: 0, bottom: 9 }, { left: NaN, right: 5, top: 0, bottom: 9 }])
      expect(cameraOf(zoom, shape, box)).toEqual(wholeCamera(shape, box));
    expect(
      visiblePart(cameraOf({ left: 9e5, right: 1e6, top: 9e5, bottom: 1e6 }, shape, box), shape, box).right
    ).toBeLessThanOrEqual(500);
  });
  it("moves no farther than needed to show a place, and stays put in another box", () => {
    const camera = clampCamera({ left: 120, top: 80, scale: 20, stretch: 1 }, shape, box);
    expect(cameraShowing(camera, { query: 90, key: 130 }, shape, box)).toEqual(camera);
    expect(cameraShowing(camera, { query: 10 }, shape, box)).toEqual({ ...camera, top: 10 });
    expect(cameraShowing(camera, { key: 200 }, shape, box).left).toBeCloseTo(201 - 45);
    const lower = { ...box, y: box.y + 60, height: box.height - 60 };
    expect(yOf(reboxCamera(camera, box, lower, shape), lower, 100)).toBeCloseTo(yOf(camera, box, 100));
  });
});

describe("tiles", () => {
  it("have cells of at least one screen pixel", () => {
    const at = (scale: number, ratio = 1): number => levelOf({ left: 0, top: 0, scale, stretch: 1 }, ratio);
    expect([at(30), at(1.1), at(1), at(0.6), at(0.5, 2), at(0.06)]).toEqual([0, 0, 1, 1, 1, 5]);
    for (let scale = 0.003; scale < 4; scale *= 1.07) expect(2 ** at(scale) * scale).toBeGreaterThan(1);
    expect([10, 256, 257, 16384, 100_000].map((n) => overviewLevel({ queries: n, keys: 3 }))).toEqual([0, 0, 1, 6, 9]);
  });
  it("cover what is seen, the middle first", () => {
    const list = tilesIn({ left: 200, top: 0, right: 1030, bottom: 256 }, 0);
    expect(list.map(({ row }) => row)).toEqual([0, 0, 0, 0, 0]);
    expect(list[0]).toEqual({ row: 0, column: 2 });
    expect(new Set(list.map(({ column }) => column))).toEqual(new Set([0, 1, 2, 3, 4]));
    expect(tilesIn({ left: 0, top: 0, right: 1000, bottom: 1000 }, 2)).toEqual([{ row: 0, column: 0 }]);
  });
});

describe("what is under the pointer", () => {
  const camera = clampCamera({ left: 0, top: 0, scale: 20, stretch: 1 }, shape, box);
  it("is a cell, the name of a row, the name of a column, or nothing", () => {
    expect(hitAt(camera, shape, box, 70 + 65, 40 + 45, false)).toEqual({ query: 2, key: 3 });
    expect(hitAt(camera, shape, box, 30, 40 + 45, false)).toEqual({ query: 2, key: null });
    expect(hitAt(camera, shape, box, 70 + 65, 30, false)).toEqual({ query: null, key: 3 });
    expect(hitAt(camera, shape, box, 70 + 65 + 15, 40 - 26, true)).toEqual({ query: null, key: 3 });
    expect(hitAt(camera, shape, box, 5, 5, false)).toBeNull();
  });
});

describe("keys", () => {
  const view = { left: 10, top: 20, right: 60, bottom: 50 };
  it("move the selection and stop at the edges", () => {
    const from = { query: 3, key: 4 };
    expect(stepSelection("ArrowDown", false, from, shape, view)).toEqual({ query: 4, key: 4 });
    expect(stepSelection("ArrowUp", true, from, shape, view)).toEqual({ query: 0, key: 4 });
    expect(stepSelection("ArrowRight", true, from, shape, view)).toEqual({ query: 3, key: 14 });
    expect(stepSelection("PageDown", false, from, shape, view)).toEqual({ query: 32, key: 4 });
    expect(stepSelection("End", false, from, shape, view)).toEqual({ query: 3, key: 499 });
    expect(stepSelection("Home", false, from, shape, view)).toEqual({ query: 3, key: 0 });
    expect(stepSelection("a", false, from, shape, view)).toBeNull();
  });
  it("start at the corner of what is seen, and leave a pinned row alone", () => {
    expect(stepSelection("ArrowDown", false, { query: null, key: null }, shape, view)).toEqual({ query: 20, key: 10 });
    expect(stepSelection("ArrowDown", false, { query: 7, key: null }, shape, view)).toEqual({ query: 8, key: null });
    expect(stepSelection("ArrowRight", false, { query: 7, key: null }, shape, view)).toEqual({ query: 7, key: 10 });
  });
  it("have ticks at round numbers", () => {
    expect([0.3, 1, 1.2, 3, 6, 14, 30, 700].map(niceStep)).toEqual([1, 1, 2, 5, 10, 20, 50, 1000]);
  });
});

describe("axes", () => {
  const measure = (text: string): number => 7 * text.length;
  const labelsOf = (count: number, scale: number, known: boolean, hover: number | null = null) => {
    const shown = Array.from({ length: count }, (_, i) => `word${i}`);
    const names = axisNames(known ? { shown, special: null } as unknown as Tokens : null, count);
    const { named, numbered, from } = roomsOf(names, names, 900, 900, measure, 60);
    const gutters = scale >= from ? named : numbered;
    const box = { x: gutters.left, y: gutters.top, width: 700, height: 700 };
    const { labels, ticks } = axesOf({
      camera: { scale, stretch: 1, left: 0, top: 0 }, shape: { queries: count, keys: count }, box, gutters, queries: names,
      keys: names, theme: LIGHT, hover: { layer: null, head: null, query: null, key: hover }, query: null, key: null,
      titles: { queries: "", keys: "" }, measure,
    });
    const keys = labels.filter((label) => label.which === "key");
    return { keys, texts: keys.map((label) => label.text), ticks, top: gutters.top };
  };
  it("have every name, every few names, or numbers, as there is room", () => {
    expect(labelsOf(40, 17, true).texts).toEqual(Array.from({ length: 40 }, (_, i) => `word${i}`));
    const some = labelsOf(140, 5, true);
    expect(some.texts.slice(0, 3)).toEqual(["word0", "word3", "word6"]);
    expect(some.keys.every((label) => label.slanted)).toBe(true);
    expect(some.ticks.length).toBe(2 * some.keys.length);
    expect(labelsOf(350, 2, true).texts.slice(0, 3)).toEqual(["0", "20", "40"]);
    expect(labelsOf(140, 5, false).texts.slice(0, 3)).toEqual(["0", "10", "20"]);
    expect(labelsOf(350, 2, true).top).toBeLessThan(some.top);
  });
  it("make way for the name in hand", () => {
    const { texts } = labelsOf(140, 5, true, 7);
    expect(texts).toContain("word7");
    expect(texts).not.toContain("word6");
    expect(texts).not.toContain("word9");
    expect(texts).toContain("word12");
  });
});
