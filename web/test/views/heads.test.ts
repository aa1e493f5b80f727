import { describe, expect, it } from "vitest";
import { heads } from "../../src/views/heads/heads";
import type { Line } from "../../src/views/heads/lines";
import { fake } from "../fake";
import { HOSTILE, press, staged, until } from "./heads.stage";

interface Probe { readonly lines: () => Line[]; readonly visible: () => readonly [number, number] }
const words = (n: number): string[] => Array.from({ length: n }, (_, i) => `word${i}`);

describe("the heads view", () => {
  it("draws the weights of the model, every one from the threshold on", async () => {
    const source = fake(words(11), { causal: true }),
      stage = staged<Probe>(heads, source, { layer: 2, heads: [1, 3] }, { threshold: 0.1 });
    await until(() => new Set(stage.probe.lines().map((line) => line.head)).size === 2);
    const wanted = [1, 3].flatMap((head) => Array.from({ length: 11 }, (_, query) =>
      source.weightsOf({ layer: 2, batch: 0, head }, query).filter((weight) => weight >= 0.1).length)).reduce((a, b) =>
        a + b, 0);
    expect(stage.probe.lines()).toHaveLength(wanted);
    for (const { query, key, head, weight } of stage.probe.lines())
      expect(weight).toBeCloseTo(source.weightsOf({ layer: 2, batch: 0, head }, query)[key]!, 6);
    const table = await stage.shown.table!();
    expect(table).toHaveLength(wanted + 1);
    stage.leave();
  });

  it("hides the first key, brings the rest back to one, and says how much was hidden", async () => {
    const source = fake(words(7), { causal: true }),
      stage = staged<Probe>(heads, source, { query: 5 }, { threshold: 0, hide: true });
    await until(() => stage.probe.lines().length > 0);
    const lines = stage.probe.lines().filter((line) => line.query === 5);
    expect(lines.some((line) => line.key === 0)).toBe(false);
    expect(lines.reduce((sum, line) => sum + line.weight, 0)).toBeCloseTo(1, 5);
    const hidden = source.weightsOf({ layer: 0, batch: 0, head: 0 }, 5)[0]! * 100;
    await until(() => stage.words().includes("renormalised"));
    expect(stage.words()).toContain(`renormalised, ${hidden < 9.95 ? hidden.toFixed(1) : hidden.toFixed(0)} % hidden`);
    stage.leave();
  });

  it("asks only for what is seen, and its page does not grow with the text", async () => {
    const sizes = [];
    for (const n of [400, 900]) {
      const source = fake(words(n), { layers: 1 }), top = source.top.bind(source);
      let asked = 0;
      source.top = (at, first, queries, count) => {
        asked += queries;
        return top(at, first, queries, count);
      };
      const stage = staged<Probe>(heads, source, {}, { threshold: 0.001 });
      await until(() => stage.probe.lines().length > 0);
      expect(asked).toBeLessThanOrEqual(64);
      expect(stage.probe.visible()[1]).toBeLessThan(30);
      sizes.push(stage.el.querySelectorAll("*").length);
      expect(stage.words()).toContain("strongest keys of each query");
      stage.leave();
    }
    expect(sizes[0]).toBe(sizes[1]);
  });

  it("moves by keyboard and says the row as a sentence", async () => {
    const source = fake(words(5)), stage = staged<Probe>(heads, source, {}, { threshold: 0.01 });
    await until(() => stage.probe.lines().length > 0);
    press(stage.el, "ArrowDown");
    press(stage.el, "ArrowDown");
    await until(() => stage.choice.picked.value.query === 0 || stage.choice.picked.value.query === 1);
    await until(() => stage.el.querySelector("[aria-live]")!.textContent!.includes("attends to"));
    stage.leave();
  });

  it("toggles heads by chips", async () => {
    const stage = staged<Probe>(heads, fake(words(5)), { head: 1 });
    const chips = [...stage.el.querySelectorAll<HTMLButtonElement>("[aria-pressed]")];
    expect(chips.map((chip) => chip.getAttribute("aria-pressed"))).toEqual(["false", "true", "false", "false"]);
    chips[3]!.click();
    expect(stage.choice.picked.value).toMatchObject({ head: 3, heads: [1, 3] });
    expect(chips[3]!.getAttribute("aria-pressed")).toBe("true");
    stage.leave();
  });

  it("shows hostile tokens as themselves", async () => {
    const stage = staged<Probe>(heads, fake(HOSTILE), { query: 0 }, { threshold: 0 });
    await until(() => stage.probe.lines().length > 0);
    const svg = await stage.shown.svg!();
    expect(svg).not.toMatch(/<script|<img/);
    const parsed = new DOMParser().parseFromString(svg, "image/svg+xml");
    expect(parsed.querySelectorAll("script, img")).toHaveLength(0);
    expect(stage.el.querySelectorAll("script, img")).toHaveLength(0);
    expect(svg).toContain("&lt;");
    stage.leave();
  });

  it("says what went wrong, and goes away clean", async () => {
    const source = fake(words(5));
    source.top = async () => {
      throw new Error("the connection was lost; open it again");
    };
    const stage = staged<Probe>(heads, source);
    await until(() => stage.el.querySelector("[role=alert]")!.textContent!.includes("connection was lost"));
    stage.leave();
    expect(stage.el.children).toHaveLength(0);
  });

  it("says so where there is nothing", async () => {
    const stage = staged<Probe>(heads, fake([], { layers: 0 }));
    await until(() => stage.el.querySelector("[role=alert]")!.textContent !== "");
    stage.leave();
  });
});
