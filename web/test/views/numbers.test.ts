import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Choice, FIRST } from "../../src/choose/choice";
import { DARK, LIGHT } from "../../src/paint/theme";
import { language, say } from "../../src/language/language";
import type { Source } from "../../src/trace/source";
import { fourDigits } from "../../src/paint/digits";
import { doAgree } from "../../src/views/numbers/digits";
import { diagramOf, stationsOf } from "../../src/views/numbers/diagram";
import { FEW, shownCount, tint } from "../../src/views/numbers/tables";
import { workOf } from "../../src/views/numbers/work";
import { numbers } from "../../src/views/numbers/numbers";
import { fake } from "../fake";
import { dressed } from "./numbers.fakes";

const WORDS = ["The", "cat", "sat", "on", "the", "mat", "."];
const AT = { layer: 1, batch: 0, head: 2 };
let stop: AbortController;
beforeEach(() => { stop = new AbortController(); });
afterEach(() => { stop.abort(); document.body.replaceChildren(); language.value = "en"; });

type Probe = {
  value(...about: (string | number)[]): number;
  steps(): string[];
  cell(): [number, number] | null;
  go(step: string): void;
};
const settled = async (): Promise<void> => { for (let i = 0; i < 30; i++) await Promise.resolve(); };

async function shown(source: Source, picked: Partial<typeof FIRST> = {}, dark = false) {
  const el = document.body.appendChild(document.createElement("div"));
  const choice = new Choice({ ...FIRST, view: "numbers", layer: AT.layer, head: AT.head, ...picked });
  const view = numbers(
    { el, source, other: null, choice, say, theme: () => (dark ? DARK : LIGHT), server: null, signal: stop.signal }
  );
  await settled();
  return { el, choice, view, probe: (el as unknown as { regard: Probe }).regard };
}

describe("digits", () => {
  it("prints four significant digits that can be pasted", () => {
    expect([0, 1, -0.35355, 12.3456, 9999.6, 123456, 3.1e-7, -Infinity, NaN].map(fourDigits))
      .toEqual(["0", "1.000", "-0.3535", "12.35", "10000", "123456", "3.100e-7", "-∞", "?"]);
    for (
      const value of [0.1234567, -9.87654, 512.3456]
    ) expect(Math.abs(Number(fourDigits(value)) / value - 1)).toBeLessThan(5e-4);
  });
  it("knows float32 noise from a real difference", () => {
    expect(doAgree(1.2345678, 1.2345679, 1)).toBe(true);
    expect(doAgree(1e-8, 3e-8, 10)).toBe(true); // what is left after terms of size 10 cancelled
    expect(doAgree(1.234, 1.236, 1)).toBe(false);
  });
});

describe("numbers", () => {
  it("takes the last query and its strongest key when nothing is chosen", async () => {
    const source = fake(WORDS), { probe } = await shown(source);
    const weights = source.weightsOf(AT, 6);
    expect(probe.cell()).toEqual([6, weights.indexOf(Math.max(...weights))]);
  });

  it("shows at every step the number that plain loops give", async () => {
    const source = fake(WORDS, { causal: true, d: 5 }), { probe } = await shown(source, { query: 4, key: 2 });
    const scores = source.scoresOf(AT, 4), weights = source.weightsOf(AT, 4), highest = Math.max(...scores.slice(0, 5));
    const products = Array.from({ length: 5 }, (_, c) => probe.value("q", c) * probe.value("k", c));
    expect(products.reduce((a, b) => a + b)).toBeCloseTo(probe.value("dot"), 5);
    products.forEach((product, c) => expect(probe.value("product", c)).toBeCloseTo(product, 12));
    expect(probe.value("scale")).toBeCloseTo(scores[2]!, 5);
    expect(probe.value("exp")).toBeCloseTo(Math.exp(scores[2]! - highest), 5);
    expect(probe.value("total")).toBeCloseTo(scores.slice(0, 5).reduce((sum, s) => sum + Math.exp(s - highest), 0), 5);
    expect(probe.value("weight")).toBeCloseTo(weights[2]!, 6);
    expect(probe.value("value", 3)).toBeCloseTo(weights[2]! * probe.value("v", 3), 6);
    expect(probe.value("weight", 1, 0)).toBeCloseTo(source.weightsOf(AT, 1)[0]!, 6);
    expect(probe.value("allowed", 1, 5)).toBe(0);
    expect(probe.steps()).toEqual(["q", "k", "dot", "scale", "mask", "softmax", "value", "mix"]);
  });

  it("prints what the probe says, with all digits in the title", async () => {
    const { el, probe } = await shown(fake(WORDS), { query: 3, key: 1 });
    const hand = el.querySelector<HTMLElement>('[data-step="scale"] strong.hand')!;
    expect(hand.textContent).toBe(fourDigits(probe.value("scale")));
    expect(Number(hand.title)).toBe(probe.value("scale"));
    const cells = [
      ...el.querySelectorAll('[data-step="softmax"] .matrix td[data-key]')
    ].map((cell) => Number((cell as HTMLElement).title));
    expect(cells).toHaveLength(49);
    expect(el.querySelectorAll(".check.wrong")).toHaveLength(0);
    expect(el.querySelectorAll(".check").length).toBeGreaterThan(1);
  });

  it("has a formula in every step, built of MathML", async () => {
    const { el, probe } = await shown(
      dressed(fake(WORDS, { causal: true }), { bias: true, softcap: true, sink: true }), { query: 2 },
    );
    expect(probe.steps()).toEqual(["q", "k", "dot", "scale", "softcap", "bias", "mask", "softmax", "value", "mix"]);
    for (const step of probe.steps()) expect(
      el.querySelector(`[data-step="${step}"] math`)?.namespaceURI
    ).toContain("MathML");
    expect(el.querySelector('section[data-step="softmax"]')!.textContent).toContain("sink");
  });

  it("adds softcap, bias and sink as the model does", async () => {
    const source = dressed(fake(WORDS), { bias: true, softcap: true, sink: true, kernel: true });
    const { el, probe } = await shown(source, { query: 5, key: 1 });
    const row = await source.row(AT, 5);
    expect(probe.value("bias")).toBeCloseTo(row.scores![1]!, 5);
    expect(probe.value("weight")).toBeCloseTo(row.weights[1]!, 6);
    expect(row.weights.reduce((a, b) => a + b)).toBeLessThan(0.99); // the sink took its share
    const totals = [
      ...el.querySelectorAll('[data-step="softmax"] tr.sum td')
    ].map((cell) => (cell as HTMLElement).title);
    expect(Number(totals[2])).toBeCloseTo(probe.value("total"), 4);
    expect(Number(totals[3])).toBeCloseTo(1, 5);
    expect(el.querySelector('section[data-step="mix"]')!.textContent).toContain("e-7");
    expect(el.querySelectorAll(".check.wrong")).toHaveLength(0);
  });

  it("says that stored weights were stored, and shows what is known", async () => {
    const { el, probe } = await shown(dressed(fake(WORDS), { stored: true }), { query: 5, key: 1 });
    expect(probe.steps()).toEqual(["stored", "weight", "value", "mix"]);
    expect(el.querySelector('section[data-step="stored"]')!.textContent).toContain("not computed from q and k");
    expect(el.querySelector('section[data-step="dot"]')).toBeNull();
  });

  it("lists the strongest keys of a large map whose weights were stored", async () => {
    const source = dressed(
      fake(Array.from({ length: 40 }, (_, i) => `w${i}`), { layers: 2, heads: 3 }), { stored: true, values: false },
    );
    const { el, probe } = await shown(source, { query: 5, key: 1 });
    const cells = [
      ...el.querySelectorAll<HTMLElement>('section[data-step="weight"] .lines td')
    ].map((cell) => Number(cell.title));
    expect(cells.reduce((a, b) => a + b)).toBeCloseTo(1, 5);
    expect(
      el.querySelector<HTMLElement>('section[data-step="weight"] td.hand')!.title
    ).toBe(String(probe.value("weight")));
  });

  it("says that values were not kept", async () => {
    const { el, probe } = await shown(dressed(fake(WORDS), { values: false }), { query: 5, key: 1 });
    expect(probe.steps().at(-1)).toBe("value");
    expect(el.querySelector('section[data-step="value"]')!.textContent).toContain("not kept");
  });

  it("shows of a large map the row, its strongest keys and what the others take together", async () => {
    const words = Array.from({ length: 41 }, (_, i) => `w${i}`), source = fake(words, { d: 64 });
    const { el, probe } = await shown(source);
    expect(el.querySelectorAll(".matrix")).toHaveLength(0);
    const rest = el.querySelector('section[data-step="softmax"] tr.rest')!;
    expect(rest.textContent).toContain("… 31 more, ");
    expect(rest.textContent).toContain(fourDigits(probe.value("rest")));
    expect(el.querySelectorAll('[data-step="dot"] tbody tr')).toHaveLength(8 + 2);
    const more = el.querySelector<HTMLElement>('[data-step="dot"] tr.rest td:last-child')!;
    const first = Array.from({ length: 8 }, (_, c) => probe.value("product", c)).reduce((a, b) => a + b);
    expect(Number(more.title) + first).toBeCloseTo(probe.value("dot"), 4);
    const box = el.querySelector<HTMLInputElement>('[data-do="channels"]')!;
    box.checked = true;
    box.dispatchEvent(new Event("change"));
    expect(el.querySelectorAll('[data-step="dot"] tbody tr')).toHaveLength(64 + 1);
  });

  it("walks forward and back by buttons and keys, and shows the steps so far", async () => {
    const { el, probe } = await shown(fake(WORDS));
    const box = el.querySelector<HTMLInputElement>('[data-do="all"]')!;
    box.checked = false;
    box.dispatchEvent(new Event("change"));
    expect(el.querySelectorAll("section")).toHaveLength(1);
    el.querySelector<HTMLElement>('[data-do="forward"]')!.click();
    expect(el.querySelectorAll("section")).toHaveLength(2);
    expect(el.querySelector(".place")!.textContent).toBe(`Step 2 of ${probe.steps().length}`);
    let shell = 0;
    document.body.addEventListener("keydown", () => { shell++; }, { signal: stop.signal });
    const press = (key: string) => el.querySelector('[data-do="forward"]')!.dispatchEvent(
      new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })
    );
    press("ArrowRight");
    expect(el.querySelector("section.now")!.getAttribute("data-step")).toBe("dot");
    press("ArrowLeft");
    expect(el.querySelector("section.now")!.getAttribute("data-step")).toBe("k");
    expect(shell).toBe(0); // the shell did not move the selection
    press("ArrowUp");
    expect(shell).toBe(1);
  });

  it("takes the cell that is clicked and points at the one under the pointer", async () => {
    const { el, choice, probe } = await shown(fake(WORDS));
    const cell = el.querySelector<HTMLElement>('[data-step="softmax"] .matrix td[data-query="2"][data-key="4"]')!;
    cell.dispatchEvent(new Event("pointerover", { bubbles: true }));
    expect(choice.hover.value).toMatchObject({ query: 2, key: 4 });
    cell.click();
    expect(choice.picked.value).toMatchObject({ query: 2, key: 4 });
    await settled();
    expect(probe.cell()).toEqual([2, 4]);
  });

  it("shows a query that fully masked, and a cell that may not be looked at", async () => {
    const blind = await shown(fake(WORDS, { padded: 7 }), { query: 3, key: 3 });
    expect(blind.el.querySelector('section[data-step="softmax"]')!.textContent).toContain("fully masked");
    const { el, probe } = await shown(fake(WORDS, { causal: true }), { query: 1, key: 5 });
    expect(probe.value("weight")).toBe(0);
    expect(el.querySelector('section[data-step="mask"] strong')!.textContent).toContain("-∞");
  });

  it("says of a key that came later that the two never met, and computes nothing", async () => {
    const plain = fake(WORDS, { causal: true });
    const later = Object.assign(Object.create(plain) as Source, {
      numbers: async (at: typeof AT, query: number, key: number) => {
        const all = await plain.numbers(at, query, key), unmet = (values: Float32Array) => values.map(
          (x, cell) => (all.allowed[cell] ? x : NaN)
        );
        return { ...all, dot: unmet(all.dot!), scores: unmet(all.scores!) };
      },
    });
    const { el, probe } = await shown(later, { query: 2, key: 5 });
    expect(probe.steps()).toEqual(["q", "k", "dot", "mask", "softmax", "value", "mix"]);
    expect(
      el.querySelector('section[data-step="dot"]')!.textContent
    ).toContain("never combined this query with this key");
    expect(el.textContent).not.toContain("?");
    expect(el.querySelectorAll(".check.wrong")).toHaveLength(0);
  });

  it("shows hostile tokens as text", async () => {
    const words = [
      "</script><img src=x onerror=alert(1)>", "\u202eabc", "\u0000", "\ud800", "x".repeat(10_000), "\"'&", "ok",
    ];
    const { el, view } = await shown(fake(words), { query: 4, key: 0 });
    expect(el.querySelector("img, script")).toBeNull();
    expect(el.textContent!.length).toBeLessThan(40_000);
    const file = await view.svg!();
    expect(file).not.toContain("<img");
    expect(new DOMParser().parseFromString(file, "image/svg+xml").querySelector("text")).not.toBeNull();
  });

  it("gives the row as a table and the computation as a picture", async () => {
    const source = fake(WORDS), { view, probe } = await shown(source, { query: 3, key: 1 });
    const table = await view.table!();
    expect(table).toHaveLength(1 + WORDS.length);
    expect(table[2]![3]).toBeCloseTo(source.weightsOf(AT, 3)[1]!, 6);
    expect(await view.svg!()).toContain(fourDigits(probe.value("softmax")));
  });

  it("speaks Chinese, and says what failed", async () => {
    language.value = "zh";
    const { el } = await shown(fake(WORDS), {}, true);
    expect(el.textContent).toContain("下一步");
    const broken = new Proxy(
      fake(WORDS),
      { get: (of, name) => (name === "numbers" ? () => Promise.reject(new Error("gone")) : Reflect.get(of, name)) },
    );
    const failed = await shown(broken);
    expect(failed.el.querySelector('[role="alert"]')!.textContent).toContain("gone");
  });
});

describe("the flow diagram", () => {
  it("stays within its width by taking more lines, and no box covers another", async () => {
    const source = dressed(fake(WORDS), { bias: true, softcap: true, sink: true });
    const work = workOf(source.info.layers[1]!, await source.numbers(AT, 5, 1), await source.row(AT, 5), 5, 1);
    for (const width of [500, 700, 1300]) {
      const picture = diagramOf(stationsOf(work, say), width, LIGHT);
      expect(picture.width).toBeLessThanOrEqual(width);
      const boxes = picture.shapes.filter((shape) => shape.mark).map(
        (shape) => (shape.inside[0] as { attributes: Record<string, number> }).attributes
      );
      boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
        const apart = a.x! + a.width! <= b.x! || b.x! + b.width! <= a.x! || a.y! + a.height! <= b.y! || b.y! + b.height! <= a.y!;
        expect(apart).toBe(true);
      }));
    }
  });
});

describe("tables", () => {
  it("show all of few channels and the first of many", () => {
    expect([FEW, FEW + 1, 128].map((count) => shownCount(count, false))).toEqual([FEW, 8, 8]);
    expect(shownCount(128, true)).toBe(128);
  });
  it("keep text readable on every tint", () => {
    const lum = (text: string): number => {
      const rgb = text.startsWith("#") ? [1, 3, 5].map(
        (i) => parseInt(text.slice(i, i + 2), 16)
      ) : text.match(/\d+/g)!.map(Number);
      const [r, g, b] = rgb.map((x) => (x / 255 <= 0.03928 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
    };
    for (const theme of [LIGHT, DARK])
      for (let t = 0; t <= 1; t += 0.05)
        for (const strength of [0.45, 1]) {
          const cell = document.createElement("td");
          tint(cell, t, theme, strength);
          const [a, b] = [lum(cell.style.backgroundColor), lum(cell.style.color)].sort((x, y) => y - x);
          expect((a! + 0.05) / (b! + 0.05)).toBeGreaterThan(4.5);
        }
  });
});
