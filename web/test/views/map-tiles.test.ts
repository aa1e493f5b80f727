import { describe, expect, it } from "vitest";
import type { Tile, TileAt } from "../../src/trace/source";
import { hasBlocked, runs, tilesToDraw } from "../../src/views/map/cells";
import { colouring, colourOf, pixels, rankedValues, shade } from "../../src/views/map/colours";
import { marks, sentences } from "../../src/views/map/legend";
import { Tiles } from "../../src/views/map/tiles";
import { say } from "../../src/language/language";

const at = (level: number, row = 0, column = 0, head = 0): TileAt => ({ layer: 0, batch: 0, head, level, row, column });
const tile = (max: number[], allowed: number[] = max.map(() => 255), sampled = 0): Tile => ({
  rows: 1, columns: max.length, max: Float32Array.from(max), mean: Float32Array.from(max, (x) => x / 2),
  allowed: Uint8Array.from(allowed), sampled,
});
const tick = (): Promise<void> => new Promise((wake) => setTimeout(wake));

interface Asked {
  at: TileAt; coarse: boolean; signal: AbortSignal; give: (tile: Tile) => void; fail: (error: Error) => void;
}
function desk(most?: number): { tiles: Tiles; asked: Asked[]; heard: () => number; failed: unknown[] } {
  const asked: Asked[] = [], failed: unknown[] = [];
  let heard = 0;
  const tiles = new Tiles(
    (at, coarse, signal) => new Promise((give, fail) => asked.push({ at, coarse, signal, give, fail })),
    () => heard++, (error) => failed.push(error), most,
  );
  return { tiles, asked, heard: () => heard, failed };
}

describe("tiles", () => {
  it("come coarse first where exact ones take time, then exact", async () => {
    const { tiles, asked } = desk();
    tiles.want([at(5), at(0)]);
    expect(asked.map(({ at: { level }, coarse }) => [level, coarse])).toEqual([[5, true], [0, false]]);
    asked[0]!.give(tile([1], [255], 32));
    await tick();
    expect(tiles.get(at(5))!.tile.sampled).toBe(32);
    expect(asked.slice(2).map(({ at: { level }, coarse }) => [level, coarse])).toEqual([[5, false]]);
    expect(tiles.done).toBe(false);
    asked[1]!.give(tile([1]));
    asked[2]!.give(tile([1]));
    await tick();
    expect(tiles.done).toBe(true);
    expect(tiles.get(at(5))!.tile.sampled).toBe(0);
  });
  it("are asked for four at a time, and let go when they leave", async () => {
    const { tiles, asked } = desk();
    tiles.want([0, 1, 2, 3, 4, 5].map((column) => at(0, 0, column)));
    expect(asked).toHaveLength(4);
    tiles.want([at(0, 0, 3), at(0, 0, 9)]);
    expect(asked.map(({ signal }) => signal.aborted)).toEqual([true, true, true, false, false]);
    expect(asked[4]!.at.column).toBe(9);
    tiles.stop();
    expect(asked.every(({ signal }) => signal.aborted)).toBe(true);
  });
  it("keep no more than their limit, and those in sight", async () => {
    const { tiles, asked } = desk(5);
    for (let column = 0; column < 12; column++) {
      tiles.want([at(0), at(0, 0, column)]);
      for (const one of asked.splice(0)) one.give(tile([1]));
      await tick();
    }
    expect(tiles.size).toBe(5);
    expect(tiles.get(at(0))).toBeDefined();
    expect(tiles.get(at(0, 0, 11))).toBeDefined();
    expect(tiles.get(at(0, 0, 1))).toBeUndefined();
  });
  it("that fail are told once and asked again only on request", async () => {
    const { tiles, asked, failed } = desk();
    tiles.want([at(0)]);
    asked[0]!.fail(new Error("no room"));
    await tick();
    expect(failed).toHaveLength(1);
    expect(tiles.done).toBe(true);
    tiles.want([at(0)]);
    expect(asked).toHaveLength(1);
    tiles.again();
    expect(asked).toHaveLength(2);
  });
  it("that are missing are stood in for by coarser ones", () => {
    const coarse = { at: at(2), tile: tile([1]), open: true, picture: null, paintedAs: "", blockedBy: null };
    const drawn = tilesToDraw(
      [at(0, 3, 2)], (one) => (one.level === 2 && one.row === 0 && one.column === 0 ? coarse : undefined), 2,
      { queries: 900, keys: 700 },
    );
    expect(drawn).toEqual([{ held: coarse, part: { left: 512, top: 768, right: 700, bottom: 900 } }]);
    expect(tilesToDraw([at(0)], () => undefined, 2, { queries: 9, keys: 9 })).toEqual([]);
  });
});

describe("colours", () => {
  it("span the overview, and leave blocked cells clear", () => {
    const one = tile([0, 0.2, 0.4, 0.9], [255, 255, 128, 0]);
    const by = colouring([one], [one], "max", "linear", false);
    expect(by.top).toBeCloseTo(0.4);
    expect([0, 0.3, 0.4, 5].map((value) => shade(value, by))).toEqual([0, 191, 255, 255]);
    const bytes = pixels(one, by);
    expect([3, 7, 11, 15].map((i) => bytes[i])).toEqual([255, 255, 255, 0]);
    expect(`rgb(${bytes[8]}, ${bytes[9]}, ${bytes[10]})`).toBe(colourOf(0.4, by));
    expect(colouring([one], [one], "mean", "linear", false).top).toBeCloseTo(0.2);
    expect(colouring([one], [one], "max", "linear", false, false, 0.75).top).toBe(0.75);
  });
  it("by rank are shares of the visible cells", () => {
    const one = tile([0.1, 0.4, 0.2, 9], [255, 255, 255, 0]);
    expect([...rankedValues([one], "max", false).sorted].map((x) => x.toFixed(1))).toEqual(["0.1", "0.2", "0.4"]);
    const by = colouring([one], [one], "max", "rank", true);
    expect(shade(Math.fround(0.2), by)).toBe(170);
    expect(by.name).not.toBe(colouring([one], [one], "max", "rank", true).name);
    const large = {
      rows: 1000, columns: 600, max: new Float32Array(600_000), mean: new Float32Array(0),
      allowed: new Uint8Array(600_000).fill(255), sampled: 0,
    };
    expect(rankedValues([large], "max", false)).toMatchObject({ step: 3, sorted: { length: 200_000 } });
  });
  it("of differences are equal on both sides of zero", () => {
    const by = colouring([tile([-0.5, 0.25])], [], "max", "linear", false, true);
    expect(by.top).toBe(0.5);
    expect([-0.5, 0, 0.5].map((value) => shade(value, by))).toEqual([0, 128, 255]);
    expect(marks(by).map(({ text }) => text)).toEqual(["-0.5", "0", "+0.5"]);
  });
  it("say what they mean", () => {
    const one = tile([0.25, 0.5]), linear = colouring([one], [one], "max", "linear", false);
    const facts = { by: linear, level: 5, sampled: 0, finer: false, hatches: [] };
    expect(sentences(facts, say)[0]).toBe("Each pixel is the largest of 32 × 32 weights");
    expect(sentences({ ...facts, level: 6, sampled: 64 }, say)[1]).toBe("Preview: one query in 64");
    expect(sentences({ ...facts, level: 0 }, say)).toEqual(
      ["Each cell is one weight", "Linear scale, full colour at 0.5"]
    );
    expect(sentences({ ...facts, by: colouring([one], [one], "mean", "rank", false) }, say)).toEqual([
      "Each pixel is the mean of the unmasked weights in a 32 × 32 block",
      "Coloured by rank among the 2 cells in view",
    ]);
    expect(marks(linear).map(({ text }) => text)).toEqual(["0", "0.25", "0.5"]);
    expect(
      marks(colouring([one], [one], "max", "log", false)).map(({ text }) => text)
    ).toEqual(["5e-5", "5e-4", "0.005", "0.05", "0.5"]);
  });
});

describe("hatches", () => {
  it("are told apart: padding is not blocked", () => {
    expect(runs(Uint8Array.from([1, 1, 0, 1, 1, 1]), 1, 5)).toEqual([[1, 2], [3, 5]]);
    const held = {
      at: at(0), tile: tile([1, 0, 0], [255, 0, 0]), open: false, picture: null, paintedAs: "", blockedBy: null,
    };
    const hidden = (unseen: number[]) => ({ blind: new Uint8Array(1), unseen: Uint8Array.from(unseen) });
    expect(hasBlocked({ ...held }, hidden([0, 1, 1]))).toBe(false);
    expect(hasBlocked({ ...held }, hidden([0, 0, 1]))).toBe(true);
    expect(hasBlocked({ ...held }, null)).toBe(true);
  });
});
