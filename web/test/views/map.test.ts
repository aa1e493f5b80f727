import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Choice, FIRST } from "../../src/choose/choice";
import { LIGHT } from "../../src/paint/theme";
import { language, say } from "../../src/language/language";
import type { Source } from "../../src/trace/source";
import { type PanelOptions, map, mapPanel } from "../../src/views/map/map";
import { significant } from "../../src/paint/digits";
import { placeIn, strongest } from "../../src/trace/rowFacts";
import { cellText, rowSentence } from "../../src/views/map/describe";
import { axisNames } from "../../src/views/map/names";
import type { Scene, ViewExports } from "../../src/views/parts/view";
import { Fake, fake, fakeLayers, named } from "../fake";

const HOSTILE = [
  "</script>", "<img src=x onerror=alert(1)>", "<!--<script>", `"'&`, "\u2028", "\u202eabc", "\0", "\ud800", "👩‍👩‍👧",
  "x".repeat(10_000), "", " ",
];
interface Probe {
  weight(query: number, key: number): number | null;
  cell(query: number, key: number): { x: number; y: number; width: number; height: number };
  level(): number;
  zoom(): { left: number; top: number; right: number; bottom: number };
  tiles(): number;
  settled(): Promise<void>;
}

let stop: AbortController;
beforeEach(() => {
  stop = new AbortController();
  language.value = "en";
  for (const [name, size] of [["clientWidth", 800], ["clientHeight", 500]] as const)
    vi.spyOn(HTMLElement.prototype, name, "get").mockReturnValue(size);
});
afterEach(() => {
  stop.abort();
  vi.restoreAllMocks();
});

interface There { el: HTMLElement; shown: ViewExports; probe: Probe; choice: Choice; canvas: HTMLCanvasElement }
function shownOf(source: Source, choice = new Choice(), options?: PanelOptions): There {
  const el = document.createElement("div");
  document.body.append(el);
  const scene: Scene = { el, source, other: null, choice, say, theme: () => LIGHT, server: null, signal: stop.signal };
  const shown = options === undefined ? map(scene) : mapPanel(scene, options);
  return { el, shown, probe: (el as unknown as { regard: Probe }).regard, choice, canvas: el.querySelector("canvas")! };
}
const at = { layer: 0, batch: 0, head: 0 };

describe("the map", () => {
  it("holds the weights of the head in hand, and none where nobody may look", async () => {
    const source = fake("a b c d e f g".split(" "), { causal: true, padded: 1 });
    const { probe, choice } = shownOf(source);
    await probe.settled();
    for (const head of [0, 2]) {
      choice.pick({ head });
      await probe.settled();
      for (let query = 0; query < 7; query++)
        source.weightsOf({ ...at, head }, query).forEach((weight, key) => {
          if (key > query || key === 6) expect(probe.weight(query, key)).toBeNull();
          else expect(probe.weight(query, key)).toBeCloseTo(weight, 6);
        });
    }
    expect(probe.level()).toBe(0);
    expect(probe.zoom()).toEqual({ left: 0, top: 0, right: 7, bottom: 7 });
  });
  it("zooms, tells the choice when it rests, and follows it", async () => {
    const { probe, choice, canvas } = shownOf(fake(Array.from({ length: 90 }, (_, i) => `t${i}`)));
    await probe.settled();
    canvas.dispatchEvent(
      Object.assign(new Event("wheel"), { deltaX: 0, deltaY: -120, deltaMode: 0, clientX: 400, clientY: 250 })
    );
    canvas.dispatchEvent(
      Object.assign(new Event("wheel"), { deltaX: 0, deltaY: -120, deltaMode: 0 })
    ); // nowhere: ignored
    for (let i = 0; i < 5; i++) canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "+" }));
    expect(probe.zoom().right - probe.zoom().left).toBeLessThan(40);
    expect(choice.picked.value.zoom).toBeNull();
    await vi.waitFor(() => expect(choice.picked.value.zoom).toEqual(probe.zoom()));
    choice.pick({ zoom: { left: 20, top: 30, right: 40, bottom: 50 } });
    await probe.settled();
    const seen = probe.zoom();
    expect((seen.left + seen.right) / 2).toBeCloseTo(30);
    expect((seen.top + seen.bottom) / 2).toBeCloseTo(40);
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "0" }));
    await vi.waitFor(() => expect(choice.picked.value.zoom).toBeNull());
    expect(probe.zoom()).toEqual({ left: 0, top: 0, right: 90, bottom: 90 });
  });
  it("pins a cell, a row or a column, lets go of it, and shows what the pointer is over", async () => {
    const { probe, choice, canvas, el } = shownOf(fake("a b c d e".split(" ")));
    await probe.settled();
    const point = (type: string, x: number, y: number, more: PointerEventInit = {}): boolean =>
      canvas.dispatchEvent(
        new PointerEvent(type, { clientX: x, clientY: y, pointerId: 1, pointerType: "mouse", ...more })
      );
    const { x, y, width, height } = probe.cell(3, 1);
    const click = (dx: number, dy: number, more?: PointerEventInit): void => {
      point("pointerdown", x + dx, y + dy, more);
      point("pointerup", x + dx, y + dy, more);
    };
    point("pointermove", x + width / 2, y + height / 2);
    expect(choice.hover.value).toEqual({ layer: 0, head: 0, query: 3, key: 1 });
    const tip = el.querySelector<HTMLElement>("[role=tooltip]")!;
    expect(tip.hidden).toBe(false);
    await vi.waitFor(() => expect(tip.textContent).toMatch(/d #3 → b #1Weight0\.\d+Score-?\d.*Rank\d of 5/));
    click(width / 2, height / 2);
    expect(choice.picked.value).toMatchObject({ query: 3, key: 1 });
    click(width / 2 + width, height / 2, { shiftKey: true });
    expect(choice.picked.value).toMatchObject({ query: 3, key: null });
    click(width / 2, -3 * height - 14);
    expect(choice.picked.value).toMatchObject({ query: null, key: 1 });
    click(-width - 20, height / 2);
    expect(choice.picked.value).toMatchObject({ query: 3, key: null });
    point("pointerleave", 0, 0);
    expect(choice.hover.value.query).toBeNull();
    expect(tip.hidden).toBe(true);
  });
  it("reads the row aloud when the selection moves by keyboard", async () => {
    const source = fake("the cat sat".split(" ")), { probe, canvas, el, choice } = shownOf(source);
    await probe.settled();
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown" }));
    expect(choice.picked.value).toMatchObject({ query: 0, key: 0 });
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown" }));
    await vi.waitFor(
      () =>
        expect(el.querySelector("[aria-live]")!.textContent).toMatch(
          /^cat to the: weight 0\.\d+, rank \d of 3\. cat attends to \w+ \d+ %, /,
        )
    );
    expect(canvas.getAttribute("aria-label")).toContain("3 queries, 3 keys");
  });
  it("gives a figure with real text and a table, with hostile tokens as themselves", async () => {
    const source = fake(HOSTILE), { probe, shown, el } = shownOf(source);
    await probe.settled();
    const file = await shown.svg!(), page = new DOMParser().parseFromString(file, "image/svg+xml");
    expect(file).not.toMatch(/<script|<img|onerror=alert\(1\)>/);
    const words = [...page.querySelectorAll("text")].map((text) => text.textContent);
    for (
      const text of [
        "</script>", "⟨RLO⟩abc", "⟨NUL⟩", "⟨D800⟩", "👩‍👩‍👧", "∅", "␣", "Queries ↓", "Keys →", "Each cell is one weight",
      ]
    )
      expect(words).toContain(text);
    expect(page.querySelectorAll("g > g > rect").length).toBeGreaterThanOrEqual(12 * 12);
    const table = await shown.table!();
    expect(table).toHaveLength(13);
    expect(table[0]![1]).toBe("</script>");
    expect(table[4]![3]).toBeCloseTo(source.weightsOf(at, 3)[2]!, 6);
    expect(el.querySelector("script, img")).toBeNull();
  });
  it("says so in both languages when there is nothing to draw or something fails", async () => {
    const source = fake(["a", "b"]);
    vi.spyOn(source, "tile").mockRejectedValue(new Error("the connection was lost"));
    const { probe, el, choice } = shownOf(source);
    await probe.settled();
    const alert = el.querySelector<HTMLElement>("[role=alert]")!;
    expect(alert.textContent).toBe("Part of the map could not be loaded: the connection was lostTry again");
    language.value = "zh";
    await probe.settled();
    expect(alert.textContent).toContain("图的一部分无法加载");
    vi.mocked(source.tile).mockRestore();
    alert.querySelector("button")!.click();
    await probe.settled();
    expect(alert.hidden).toBe(true);
    expect(probe.weight(1, 1)).not.toBeNull();
    choice.pick({ layer: 7 });
    await probe.settled();
    expect(alert.textContent).toContain("第 7 层");
  });
  it("labels what is stored, implied or unverified", async () => {
    const layers = fakeLayers(["a", "b"], { layers: 2 });
    const stored = { ...layers[1]!, info: { ...layers[1]!.info, how: "stored" as const } };
    const source = new Fake([layers[0]!, stored], [named(["a", "b"])]);
    vi.spyOn(source, "proof").mockResolvedValue({
      status: "unverified", output: null, kernel: null, normaliser: null, ulp: null, why: "dropout was on",
    });
    const { probe, el, choice } = shownOf(source);
    const badge = el.querySelector<HTMLElement>("[data-part=badge]")!;
    await probe.settled();
    await vi.waitFor(() => expect(badge.textContent).toBe("Unverified: dropout was on"));
    choice.pick({ layer: 1 });
    await probe.settled();
    expect(badge.textContent).toBe("Stored weights");
  });
  it("takes differences from elsewhere, and cleans up when it goes", async () => {
    const source = fake("a b c".split(" ")), signed = vi.fn(async () => ({
      rows: 3, columns: 3, max: Float32Array.from([-0.5, 0, 0.25, 0, 0, 0, 0, 0, 0]), mean: new Float32Array(9),
      allowed: new Uint8Array(9).fill(255), sampled: 0,
    }));
    const el = document.createElement("div");
    document.body.append(el);
    const panel = shownOf(
      source, new Choice({ ...FIRST, query: 1 }), { tiles: signed, diverging: true, title: "B − A", el },
    );
    const probe = (el as unknown as { regard: Probe }).regard;
    await probe.settled();
    expect(probe.weight(0, 0)).toBe(-0.5);
    expect(el.querySelector("[data-part=legend]")!.textContent).toContain("Each cell is the difference of two weights");
    expect(panel.el.children).toHaveLength(0);
    expect(el.textContent).toContain("B − A");
    stop.abort();
    expect(el.children).toHaveLength(0);
  });
});

describe("words", () => {
  it("have as many digits as there is room for", () => {
    expect(
      [0, 0.5, 0.91234, 0.05, 1, 0.000031, 12.345, 1234567].map((value) => significant(value, 3))
    ).toEqual(["0", "0.5", "0.912", "0.05", "1", "3.1e-5", "12.3", "1234567"]);
    const measure = (text: string): number => 7 * text.length;
    expect([80, 46, 36, 30].map((width) => cellText(0.0512, width, measure))).toEqual(["0.0512", "0.05", "0.05", ""]);
    expect(cellText(0.0051, 36, measure)).toBe("5e-3");
  });
  it("say how a key stands in its row", () => {
    const row = {
      weights: Float32Array.from([0.05, 0.9, 0, 0.05]), scores: null, allowed: Uint8Array.from([1, 1, 0, 1]),
    };
    expect(placeIn(row, 0)).toMatchObject({ rank: 2, of: 3, score: null, allowed: true });
    expect(strongest(row, 2).map(({ key }) => key)).toEqual([1, 0]);
    const names = axisNames(named(["The", "cat", "x", "。"]), 4);
    expect(rowSentence(row, 1, names, names, say)).toBe("cat attends to cat 90 %, The 5 %, 。 5 %");
    expect(rowSentence({ ...row, allowed: new Uint8Array(4) }, 0, names, names, say)).toBe("The cannot attend to any key");
  });
  it("name places by number where tokens are not known", () => {
    expect(axisNames(null, 5).at(3)).toMatchObject({ text: "3", pale: true });
    expect(axisNames(named(["a", "[CLS]"], { special: [false, true] }), 3).at(1).pale).toBe(true);
    expect(axisNames(named(["a"]), 3).at(2).text).toBe("2");
  });
});
