import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Choice, FIRST } from "../../src/choose/choice";
import { LIGHT } from "../../src/paint/theme";
import { language, say } from "../../src/language/language";
import type { Source } from "../../src/trace/source";
import { image } from "../../src/views/image/image";
import { seenIn, squaresOf } from "../../src/views/image/glimpses";
import { canRollOut, framesIn, gridOf, patchAt, patchFrame, readingOf } from "../../src/views/image/patches";
import { fake, named } from "../fake";
import { crossing, pictured } from "./numbers.fakes";

const AT = { layer: 1, batch: 0, head: 2 };
let stop: AbortController;
beforeEach(() => { stop = new AbortController(); });
afterEach(() => { stop.abort(); document.body.replaceChildren(); });

describe("patches", () => {
  it("are the last tokens, or those that are not special", () => {
    const words = ["[CLS]", "a", "b", "c", "d", "e", "f"];
    expect([...gridOf(named(words, { grid: [2, 3] }), 7)!.places]).toEqual([1, 2, 3, 4, 5, 6]);
    const special = [false, false, false, false, false, false, true];
    expect([...gridOf(named(words, { grid: [2, 3], special }), 7)!.places]).toEqual([0, 1, 2, 3, 4, 5]);
    expect(gridOf(named(words, { grid: [3, 3] }), 7)).toBeNull();
    expect(gridOf(named(words), 7)).toBeNull();
  });
  it("stand where a pointer finds them", () => {
    const grid = gridOf(named(Array.from({ length: 15 }, String), { grid: [3, 5] }), 15)!;
    for (const room of [{ width: 700, height: 300 }, { width: 200, height: 500 }])
      for (const count of [1, 2]) {
        const frames = framesIn(room, { width: 50, height: 30 }, count, 16);
        for (const frame of frames) {
          expect(frame.width / frame.height).toBeCloseTo(50 / 30, 6);
          expect(frame.x).toBeGreaterThanOrEqual(-1e-9);
          expect(frame.y + frame.height).toBeLessThanOrEqual(room.height + 1e-9);
          for (let patch = 0; patch < 15; patch++) {
            const at = patchFrame(frame, grid, patch);
            expect(patchAt(frames, grid, at.x + at.width / 2, at.y + at.height / 2)).toBe(patch);
          }
        }
        expect(patchAt(frames, grid, -5, -5)).toBe(-1);
      }
  });
  it("are read by rows where keys are patches, by columns where only queries are", () => {
    expect(readingOf(pictured([2, 3], 1).info, 0, 0)).toMatchObject({ by: "row", chips: [0], first: 0 });
    expect(readingOf(pictured([3, 3], 0).info, 0, 0)).toMatchObject({ by: "row", chips: [], first: 4 });
    expect(
      readingOf(crossing(["a", "b", "c"], [2, 3]).info, 0, 0)
    ).toMatchObject({ by: "row", asks: null, chips: [0, 1, 2], first: 2 });
    const { info } = crossing(["a", "b", "c"], [2, 3]);
    const turned = {
      ...info,
      layers: info.layers.map((layer) => ({ ...layer, shape: [1, 4, 6, 3] as const, queries: [1], keys: [0] })),
    };
    expect(readingOf(turned, 0, 0)).toMatchObject({ by: "column", chips: [0, 1, 2], first: 0 });
    expect(readingOf(fake(["a", "b"]).info, 0, 0)).toBeNull();
  });
});

type Probe = { weight(patch: number): number; query(): number };
const shown = async (source: Source, picked: Partial<typeof FIRST> = {}) => {
  const el = document.body.appendChild(document.createElement("div"));
  const choice = new Choice({ ...FIRST, view: "image", layer: AT.layer, head: AT.head, ...picked });
  const view = image({ el, source, other: null, choice, say, theme: () => LIGHT, server: null, signal: stop.signal });
  for (let i = 0; i < 30; i++) await Promise.resolve();
  return { el, choice, view, probe: (el as unknown as { regard: Probe }).regard };
};

describe("image", () => {
  it("shows the weights of the class token over the patches, and what lies outside the picture", async () => {
    const source = pictured([3, 4], 2), { el, probe } = await shown(source);
    const weights = source.weightsOf(AT, 0);
    expect(probe.query()).toBe(0);
    for (let patch = 0; patch < 12; patch++) expect(probe.weight(patch)).toBeCloseTo(weights[patch + 2]!, 6);
    expect(el.textContent).toContain((weights[0]! + weights[1]!).toPrecision(4));
    expect(el.querySelectorAll(".chip")).toHaveLength(2);
  });
  it("takes another query by chip", async () => {
    const source = crossing(["a", "small", "red", "circle"], [2, 3]), { el, choice, probe } = await shown(source);
    expect(probe.query()).toBe(3);
    [...el.querySelectorAll<HTMLElement>(".chip")][1]!.click();
    for (let i = 0; i < 30; i++) await Promise.resolve();
    expect(choice.picked.value.query).toBe(1);
    expect(probe.weight(4)).toBeCloseTo(source.weightsOf(AT, 1)[4]!, 6);
    expect(el.querySelector('[aria-pressed="true"]')!.textContent).toBe("small");
  });
  it("takes a patch by keyboard", async () => {
    const { el, choice } = await shown(pictured([3, 4], 1), { query: 6 });
    const stage = el.querySelector(".stage")!;
    for (const key of ["ArrowDown", "ArrowRight", "Enter"]) stage.dispatchEvent(
      new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })
    );
    expect(choice.picked.value.query).toBe(6 + 4 + 1);
  });
  it("shows few chips of many words", async () => {
    const words = Array.from({ length: 500 }, (_, i) => `w${i}`), { el } = await shown(crossing(words, [2, 3]));
    expect(el.querySelectorAll(".chip")).toHaveLength(60);
    expect(el.textContent).toContain("440 more");
  });
  it("says that a layer has no grid, what failed, and never fetches a picture from elsewhere", async () => {
    expect((await shown(fake(["a", "b"]))).el.textContent).toContain("reads no image");
    const broken = Object.assign(
      Object.create(pictured([2, 2], 1)) as Source, { row: () => Promise.reject(new Error("lost")) },
    );
    expect((await shown(broken)).el.querySelector('[role="alert"]')!.textContent).toContain("lost");
    const far = await shown(pictured([2, 2], 1, { address: "//elsewhere/a.png", width: 10, height: 10 }));
    expect(far.el.textContent).toContain("could not be shown");
    expect(far.el.querySelector("img")).toBeNull();
  });
  it("lays no window over the picture, and says why in both languages", async () => {
    const whole = pictured([3, 4], 1), states = ["parts_of_picture"];
    const info = { ...whole.info, layers: whole.info.layers.map((one, i) => (i === 1 ? { ...one, states } : one)) };
    const source = Object.assign(Object.create(whole) as Source, { info });
    const { el, view, probe, choice } = await shown(source);
    expect(el.textContent).toContain("not placed on the image yet");
    expect(el.querySelector("canvas")).toBeNull();
    expect(probe.weight(3)).toBeNaN();
    expect(await view.svg!()).toContain("not placed on the image yet");
    language.value = "zh";
    expect((await shown(source)).el.textContent).toContain("窗口");
    language.value = "en";
    choice.pick({ layer: 0 });
    for (let i = 0; i < 30; i++) await Promise.resolve();
    expect(el.querySelector("canvas")).not.toBeNull(); // a layer that sees all of it
    expect(probe.weight(3)).toBeCloseTo(whole.weightsOf({ ...AT, layer: 0 }, 0)[4]!, 6);
  });
  it("gives the picture as a file and the weights as a table", async () => {
    const source = pictured([3, 4], 1), { view } = await shown(source);
    const file = await view.svg!();
    expect(
      new DOMParser().parseFromString(file, "image/svg+xml").querySelectorAll("g rect").length
    ).toBeGreaterThanOrEqual(12);
    expect(await view.table!()).toHaveLength(13);
  });
});

describe("rollout", () => {
  it("takes the place of one head, from the query to the patches of the input", async () => {
    const source = pictured([3, 4], 2), { el, probe, choice } = await shown(source);
    const pickRollout = async (value: string): Promise<void> => {
      const list = el.querySelector<HTMLSelectElement>('[data-do="rollout"]')!;
      list.value = value;
      list.dispatchEvent(new Event("change"));
      for (let i = 0; i < 30; i++) await Promise.resolve();
    };
    await pickRollout("all");
    const flow = await source.flow({ query: 0, batch: 0, residual: 0.5, by: "weights" });
    for (let patch = 0; patch < 12; patch++) expect(probe.weight(patch)).toBeCloseTo(flow.target[patch + 2]!, 6);
    expect(el.textContent).toContain("Rollout from");
    choice.pick({ query: 5 });
    for (let i = 0; i < 30; i++) await Promise.resolve();
    const other = await source.flow({ query: 5, batch: 0, residual: 0.5, by: "weights" });
    expect(probe.weight(7)).toBeCloseTo(other.target[9]!, 6);
    await pickRollout("");
    expect(probe.weight(7)).toBeCloseTo(source.weightsOf(AT, 5)[9]!, 6);
  });
  it("is not offered where layers have other tokens", () => {
    const { info } = pictured([3, 4], 2);
    expect(canRollOut(info, 1)).toBe(true);
    const merged = info.layers.map((one, i) => (i === 0 ? { ...one, shape: [1, 4, 56, 56] as const } : one));
    expect(canRollOut({ ...info, layers: merged }, 1)).toBe(false);
    expect(canRollOut(crossing(["a", "b"], [2, 3]).info, 0)).toBe(false);
  });
});

describe("glimpses", () => {
  it("are the squares that the model cuts out, centred on each other, and what they hold is averaged", () => {
    const way = { size: 2, scales: 2, places: [[2, 3], [0, 0]] as const };
    expect(squaresOf(way, 0)).toEqual([{ top: 1, left: 2, side: 2 }, { top: 0, left: 1, side: 4 }]);
    const pixels = { width: 5, height: 4, data: Array.from({ length: 80 }, (_, i) => (i % 4 === 3 ? 255 : i >> 2)) };
    const seen = (at: number, scale: number): number[][] => {
      const all = [...seenIn(pixels, squaresOf(way, at)[scale]!, 2)];
      return [0, 4, 8, 12].map((cell) => [all[cell]!, all[cell + 3]!]);
    };
    expect(seen(0, 0)).toEqual([[7, 255], [8, 255], [12, 255], [13, 255]]);
    expect(seen(0, 1)).toEqual([[4, 255], [6, 255], [14, 255], [16, 255]]); // means of 4 pixels, as bytes
    expect(seen(1, 0)).toEqual([[0, 0], [0, 0], [0, 0], [0, 255]]); // what lies outside is transparent
    expect(seen(1, 1).map(([, opacity]) => opacity)).toEqual([0, 0, 0, 255]);
  });
  it("are numbered along their way, and a chip chooses one", async () => {
    const glimpses = { size: 2, scales: 1, places: [[1, 1], [2, 3], [0, 2], [2, 2]] as const };
    const source = crossing(["glimpse 1", "glimpse 2", "glimpse 3", "glimpse 4"], [3, 4]);
    const picture = { address: "data:image/png;base64,AA", width: 4, height: 3, glimpses };
    const held = Object.assign(Object.create(source) as Source, { info: { ...source.info, picture } });
    const { el, view, choice } = await shown(held);
    expect(el.textContent).toContain("Where the model looked, in order");
    [...el.querySelectorAll<HTMLElement>(".chip")][1]!.click();
    expect(choice.picked.value.query).toBe(1);
    const file = new DOMParser().parseFromString(await view.svg!(), "image/svg+xml");
    expect(file.querySelectorAll("circle")).toHaveLength(4);
    expect(file.querySelectorAll("polyline")[1]!.getAttribute("points")!.split(" ")).toHaveLength(4);
    expect([...file.querySelectorAll('rect[stroke-width="3"]')].some((one) => one.getAttribute("width") === "240"))
      .toBe(true);
  });
});
