import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Choice, FIRST } from "../../src/choose/choice";
import { language, say } from "../../src/language/language";
import { LIGHT } from "../../src/paint/theme";
import type { Guess, Reading } from "../../src/trace/reading";
import type { Source } from "../../src/trace/source";
import { alignTokens } from "../../src/views/readings/align";
import { BesideChoice } from "../../src/views/readings/besideChoice";
import { headNumbers } from "../../src/views/readings/headNumbers";
import { readings } from "../../src/views/readings/readings";
import { shareText } from "../../src/views/readings/words";
import { Fake, fakeLayers, named } from "../fake";
import { HOSTILE } from "./heads.stage";

let stop: AbortController;
beforeEach(() => { stop = new AbortController(); });
afterEach(() => {
  stop.abort();
  document.body.replaceChildren();
  language.value = "en";
});

const guess = (share: number, rank: number, name = "cat"): Guess =>
  ({ logProb: Math.log(share), rank, top: [{ name, share: 0.5 }, { name: "dog", share: 0.25 }] });
const reading = (name: string, more: Partial<Reading>): Reading => ({
  name, objective: "next", parameters: 1234567, layers: 3, heads: [4, 4, 4], tokens: 4, mayLook: 0.625, back: 0.5,
  itself: 0.5, ahead: 0, distance: 1.25, entropy: 1.5, changeBefore: 0, spans: null, guesses: [], logProb: -2,
  common: { tokens: 2, logProb: -1.5, first: 0.5 },
  writing: { tokens: 8, passes: 8, positions: 11, seconds: 0.0125, cached: true, text: "and so on" }, ...more,
});

/** "un seen cats" of a GPT in four tokens, of a BERT in four between [CLS] and [SEP]. */
const LEFT = ["un", "seen", "cat", "s"], RIGHT = ["[CLS]", "unseen", "cat", "s", "[SEP]"];
const GPT = reading("gpt", {
  spans: [[0, 2], [2, 6], [7, 10], [10, 11]], guesses: [null, guess(0.01, 7), guess(0.2, 3), guess(0.4, 1)],
});
const BERT = reading("bert", {
  objective: "masked", tokens: 5, mayLook: 1, ahead: 0.25, spans: [null, [0, 6], [7, 10], [10, 11], null],
  guesses: [null, guess(0.5, 1), guess(0.02, 9, "猫"), guess(0.3, 2), null], changeBefore: 2.5, logProb: -1,
  writing: { tokens: 8, passes: 8, positions: 76, seconds: 0.05, cached: false, text: "……" },
});
const left = (): Fake => new Fake(
  fakeLayers(LEFT, { causal: true }), [named(LEFT, { text: "unseen cats", offsets: [[0, 2], [2, 6], [6, 10], [10, 11]] })],
  { name: "gpt", reading: GPT },
);
const right = (shown: readonly string[] = RIGHT): Fake => new Fake(
  fakeLayers(shown, { d: 3, layers: 2, heads: 5 }),
  [named(shown, { text: "unseen cats", offsets: [null, [0, 6], [7, 10], [10, 11], null] })], { name: "bert", reading: BERT },
);

interface Probe {
  weight(side: string, query: number, key: number): number | null;
  picked(side: string): typeof FIRST;
  hover(side: string): { query: number | null; key: number | null };
  numbers(side: string): Record<string, number> | null;
  gap(): { left: number | null; right: number | null } | null;
  guess(side: string): Guess | null;
  settled(): Promise<void>;
}

async function shown(source: Source, other: Source | null, picked: Partial<typeof FIRST> = {}) {
  const el = document.body.appendChild(document.createElement("div"));
  const choice = new Choice({ ...FIRST, view: "readings", ...picked });
  const view = readings({ el, source, other, choice, say, theme: () => LIGHT, server: null, signal: stop.signal });
  const { regard } = el as unknown as { regard: Probe };
  await regard.settled();
  return { el, choice, view, probe: regard };
}

/** The numbers of a row of the table: cells as they are shown. */
const rowOf = (el: HTMLElement, name: string): (string | null)[] =>
  [...el.querySelectorAll(`[data-row="${name}"] td`)].map((cell) => cell.textContent);

describe("tokens of two traces", () => {
  it("are aligned by the characters of the text, and special ones by nothing", () => {
    const { there, back, isSame } = alignTokens(left().info, right().info, 0, 0);
    expect([0, 1, 2, 3].map((place) => there(place))).toEqual([1, 1, 2, 3]);
    expect([0, 1, 2, 3, 4].map((place) => back(place))).toEqual([null, 1, 2, 3, null]); // "seen" is the longer part
    expect([there(null), back(null), isSame]).toEqual([null, null, false]);
  });

  it("are aligned by what they spell, spaces aside, where the text that was read is not known", () => {
    const plain = (fake: Fake): Fake["info"] => {
      const { reading: _, ...info } = fake.info;
      return info;
    };
    const { there } = alignTokens(plain(left()), plain(right()), 0, 0);
    expect([0, 1, 2, 3].map((place) => there(place))).toEqual([1, 1, 2, 3]);
  });

  it("are the same where they are the same", () => {
    const { there, isSame } = alignTokens(left().info, left().info, 0, 2);
    expect([there(3), isSame]).toEqual([3, true]);
  });
});

describe("the numbers of a head", () => {
  it.each([["causal", true, 5], ["open", false, 7], ["over several tiles", false, 300]])("%s are those of plain loops", async (_, causal, n) => {
    const words = Array.from({ length: n }, (_, i) => `w${i}`), at = { layer: 1, batch: 0, head: 2 };
    const source = new Fake(fakeLayers(words, { causal }), [named(words)]);
    const rows = words.map((_, i) => source.weightsOf(at, i));
    const sum = (of: (weight: number, i: number, j: number) => number): number =>
      rows.reduce((all, row, i) => all + row.reduce((some, weight, j) => some + of(weight, i, j), 0), 0);
    const found = await headNumbers(source, at);
    expect(found!.mayLook).toBeCloseTo(causal ? (n + 1) / (2 * n) : 1, 12);
    expect(found!.back).toBeCloseTo(sum((w, i, j) => (j < i ? w : 0)) / n, 5);
    expect(found!.itself).toBeCloseTo(sum((w, i, j) => (j === i ? w : 0)) / n, 5);
    expect(found!.ahead).toBeCloseTo(sum((w, i, j) => (j > i ? w : 0)) / n, 5);
    expect(found!.distance).toBeCloseTo(sum((w, i, j) => w * Math.abs(i - j)) / n, 3);
    expect(found!.entropy).toBeCloseTo(-sum((w) => (w > 0 ? w * Math.log2(w) : 0)) / n, 4);
  });

  it("are not counted where the map is too large", async () => {
    const words = Array.from({ length: 1025 }, () => "w");
    expect(await headNumbers(new Fake(fakeLayers(words, { layers: 1, heads: 1 }), [named(words)]), { layer: 0, batch: 0, head: 0 })).toBeNull();
  });
});

describe("two readings", () => {
  it("show a message, and no map, where nothing stands beside", async () => {
    const { el } = await shown(left(), null);
    expect(el.textContent).toContain("Choose a second trace");
  });

  it("have one selection: what is picked or pointed at on one side is so on the other", async () => {
    const { choice, probe } = await shown(left(), right());
    choice.pick({ query: 2, key: 0 });
    expect(probe.picked("right")).toMatchObject({ query: 2, key: 1 });
    choice.point({ layer: 0, head: 0, query: 3, key: 1 });
    expect(probe.hover("right")).toMatchObject({ query: 3, key: 1, layer: 0 });
    choice.point(null);
    expect(probe.hover("right")).toMatchObject({ query: null, key: null });
  });

  it("have each a layer and a head of its own, which the choice holds", async () => {
    const { el, choice, probe } = await shown(left(), right(), { layer: 2, head: 3 });
    expect(probe.picked("right")).toMatchObject({ layer: 1, head: 3 }); // it has two layers
    const [layer, head] = [...el.querySelectorAll("select")].slice(2) as [HTMLSelectElement, HTMLSelectElement];
    head.value = "4";
    head.dispatchEvent(new Event("change"));
    layer.value = "0";
    layer.dispatchEvent(new Event("change"));
    expect(choice.picked.value).toMatchObject({ layer: 2, head: 3, beside: { layer: 0, head: 4 } });
    expect(probe.picked("right")).toMatchObject({ layer: 0, head: 4 });
    await probe.settled();
    const other = await headNumbers(right(), { layer: 0, batch: 0, head: 4 });
    expect(probe.numbers("right")).toEqual(other);
  });

  it("show the numbers of all heads and of the head in hand", async () => {
    const { el, probe } = await shown(left(), right());
    expect(rowOf(el, "objective")).toEqual(["the next token", "masked words"]);
    expect(rowOf(el, "parameters")).toEqual(["1\u202f234\u202f567", "1\u202f234\u202f567"]);
    expect(rowOf(el, "may")).toEqual(["62.5 %", "62.5 %", "100 %", "100 %"]);
    expect(rowOf(el, "ahead")[3]).toBe(shareText(probe.numbers("right")!["ahead"]!));
    expect(rowOf(el, "perplexity")).toEqual(["7.389", "2.718 (pseudo)"]);
    expect(rowOf(el, "positions")).toEqual(["11", "76"]);
    const captions = [...el.querySelectorAll('[data-part="caption"]')].map((one) => one.textContent);
    expect(captions).toEqual(["sees only what came before: 62.5 % of the map", "sees the whole text: 100 % of the map"]);
  });

  it("begin at the word where the guesses differ most, and go where a word is clicked", async () => {
    const { el, choice, probe } = await shown(left(), right());
    expect(probe.gap()).toEqual({ left: 1, right: 1 }); // 1 % against 50 %
    el.querySelector<HTMLElement>('[data-place="2"]')!.click();
    expect(choice.picked.value).toMatchObject({ query: 2, key: null });
    expect([probe.guess("left"), probe.guess("right")]).toEqual([GPT.guesses[2], BERT.guesses[2]]);
    const real = [...el.querySelectorAll('[data-part="real"]')].map((one) => one.textContent);
    expect(real).toEqual([
      "The real one, “cat”: 20.0 %, rank 3 (log-probability −1.609).", "The real one, “cat”: 2.0 %, rank 9 (log-probability −3.912).",
    ]);
    const seen = [...el.querySelectorAll(".seen")].map((one) => one.textContent);
    expect(seen).toEqual(["unseen____", "unseen____s"]); // a GPT does not see what comes after
    expect(el.querySelectorAll<HTMLButtonElement>('[data-place="0"]')[0]!.disabled).toBe(false); // BERT guesses it
  });

  it("work beside a trace of which nothing more is known, and say so", async () => {
    const words = ["a", "b", "c"], { el, probe } = await shown(left(), new Fake(fakeLayers(words), [named(words)]));
    expect(rowOf(el, "perplexity")).toEqual(["7.389", "–"]);
    expect(probe.gap()).toEqual({ left: 1, right: null });
    expect(el.textContent).toContain("fake makes no prediction here");
    const { el: bare } = await shown(new Fake(fakeLayers(words), [named(words)]), new Fake(fakeLayers(words), [named(words)]));
    expect(bare.textContent).toContain("Neither model predicts a word");
  });

  it("pick what has no counterpart on its own side only, until something else is picked", () => {
    const first = new Choice({ ...FIRST, query: 1 }), a = left().info, b = right().info;
    const beside = new BesideChoice(first, b, () => alignTokens(a, b, 0, 0), stop.signal);
    beside.pick({ query: 0, key: 2 }); // [CLS]
    expect([first.picked.value.query, first.picked.value.key]).toEqual([null, 2]);
    expect([beside.picked.value.query, beside.picked.value.key]).toEqual([0, 2]);
    first.pick({ query: 3 });
    expect(beside.picked.value.query).toBe(3);
    beside.point({ layer: 0, head: 0, query: 4, key: 1 }); // [SEP]
    expect([first.hover.value.query, first.hover.value.key, beside.hover.value.query]).toEqual([null, 1, 4]);
    beside.draw({ scale: "log" });
    expect([first.drawn.value.scale, beside.drawn.value.scale]).toEqual(["log", "log"]);
  });

  it("say what failed", async () => {
    const broken = Object.assign(Object.create(right()) as Source, { tile: () => Promise.reject(new Error("lost")) });
    const { el } = await shown(left(), broken);
    expect(el.querySelector('.numbers [role="alert"]')!.textContent).toContain("lost");
  });

  it("give a table for a file, and a picture", async () => {
    const { view } = await shown(left(), right());
    const table = await view.table!();
    expect(table[0]).toEqual(["", "gpt: all heads", "gpt: this head", "bert: all heads", "bert: this head"]);
    expect(table.find(([name]) => name === "Entropy, bits")!.slice(1, 2)).toEqual([1.5]);
    expect(table.every((line) => line.length === 5)).toBe(true);
  });

  it("put hostile names into the page as text", async () => {
    const many = new Fake(fakeLayers(HOSTILE, { causal: true }), [named(HOSTILE)], {
      name: HOSTILE[0]!, reading: { ...GPT, spans: null, guesses: HOSTILE.map((name) => guess(0.5, 1, name)) },
    });
    const { el } = await shown(many, many, { query: 1 });
    expect(el.querySelector("script, img")).toBeNull();
    expect(el.textContent).toContain("<img src=x");
  });

  it("speak Chinese", async () => {
    language.value = "zh";
    const { el } = await shown(left(), right());
    expect(el.textContent).toContain("只能看前文：可见注意力图的 62.5 %");
    expect(el.textContent).not.toMatch(/地图/);
  });
});
