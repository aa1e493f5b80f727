import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Choice, FIRST } from "../../src/choose/choice";
import type { Server } from "../../src/hosts/server";
import type { TrainingCard } from "../../src/trace/messages";
import { LIGHT } from "../../src/paint/theme";
import { language, say } from "../../src/language/language";
import { training } from "../../src/views/training/training";
import { CHART, chartOf, chartScales, stepAt } from "../../src/views/training/chart";
import { chartsOf, differentSettings, spanOf } from "../../src/views/training/curves";
import { progressParts } from "../../src/views/training/progress";
import { stepSources } from "../../src/views/training/stepSources";
import { fake } from "../fake";
import { CARDS, trainingCard, trainings } from "./numbers.fakes";

const WORDS = ["a", "b", "c", "d"];
let stop: AbortController;
beforeEach(() => { stop = new AbortController(); });
afterEach(() => { stop.abort(); document.body.replaceChildren(); vi.useRealTimers(); language.value = "en"; });

const [ONE, TWO, THREE] = CARDS as [TrainingCard, TrainingCard, TrainingCard];
const named = (card: TrainingCard, other: TrainingCard | null = null): [string, number[][]][] =>
  chartsOf(card, other, say).map(({ name, lines }) => [name, lines.map((line) => line.map(([step]) => step))]);

describe("curves", () => {
  it("are the loss, the scores with the one that decides in front, and the speed", () => {
    expect(named(ONE)).toEqual([
      ["Training loss", [[1, 50, 500, 2000, 2050]]], ["Validation bleu", [[0, 100, 500, 1000, 2000]]],
      ["Validation loss", [[0, 100, 500, 1000, 2000]]], ["Tokens per second", [[1, 500, 2050]]],
    ]);
    expect(chartsOf(ONE, null, say).map(({ best }) => best)).toEqual([null, [2000, 27.2], null, null]);
    expect(named(TWO)).toEqual([]);
  });
  it("of two runs lie over each other, also where only one has them", () => {
    expect(named(ONE, THREE)).toEqual([
      ["Training loss", [[1, 50, 500, 2000, 2050], [1, 2500]]],
      ["Validation bleu", [[0, 100, 500, 1000, 2000], [500, 2500]]],
      ["Validation loss", [[0, 100, 500, 1000, 2000], []]], ["Tokens per second", [[1, 500, 2050], [2500]]],
    ]);
    expect(spanOf(ONE)).toEqual([0, 2050]);
    expect(spanOf(ONE, THREE)).toEqual([0, 2500]);
    expect(spanOf(trainingCard({}))).toEqual([0, 1]);
  });
  it("leave out what is no number, and names that objects have anyway", () => {
    const odd = trainingCard({ scores: { x: [[1, NaN], [2, 3], [3, Infinity]] }, best: { score: "toString", value: 1, step: 2 } });
    expect(named(odd)).toEqual([["Validation x", [[2]]]]);
  });
  it("stand within the chart, the highest on top, on one scale for both runs", () => {
    const span = spanOf(ONE), [, , loss] = chartsOf(ONE, null, say), { x, y, low, high } = chartScales(loss!, span);
    expect([low, high]).toEqual([1.1, 6.2]);
    expect(y(high)).toBeLessThan(y(low));
    expect(x(2000)).toBeLessThan(CHART.width);
    expect(stepAt(ONE.steps, span, x(500) + 3)).toBe(2);
    const flat = chartScales({ name: "x", lines: [[[0, 5]]], best: null }, [0, 0]);
    expect(Number.isFinite(flat.y(5)) && Number.isFinite(flat.x(0))).toBe(true);
    expect(JSON.stringify(chartOf(loss!, span, 1000, 0, LIGHT))).toContain("1.400");
    const [both] = chartsOf(ONE, THREE, say);
    expect(chartScales(both!, spanOf(ONE, THREE))).toMatchObject({ low: 0.8, high: 7.9 });
  });
  it("mark the best step, and are told apart by colour and dashes", () => {
    const [, bleu] = chartsOf(ONE, THREE, say), drawn = JSON.stringify(chartOf(bleu!, spanOf(ONE, THREE), null, 1, LIGHT));
    expect(drawn.match(/"class":"best"/g)).toHaveLength(1);
    expect(drawn.match(/"stroke-dasharray":"5 3"/g)).toHaveLength(1);
    expect(new Set([...drawn.matchAll(/"d":"[^"]*","fill":"none","stroke":"(#\w+)"/g)].map(([, colour]) => colour)).size).toBe(2);
  });
});

describe("settings", () => {
  it("that differ are listed, also those that one of the runs does not have", () => {
    expect(differentSettings(ONE, THREE)).toEqual([["width", "128", "64"], ["heads", "4", "–"], ["cell", "–", "gru"]]);
    expect(differentSettings(ONE, ONE)).toEqual([]);
    expect(differentSettings(ONE, TWO)[0]).toEqual(["task", "translate", "induction"]);
  });
});

describe("progress", () => {
  it("says how far a run is, how good, how fast, and how long it still takes", () => {
    expect(progressParts(ONE, 1_800_000_000_000 - 3_725_000, say)).toEqual([
      "Running", "step 2050 of 2500", "best bleu 27.20 at step 2000", "2135 tokens/s", "1:02:05 left",
    ]);
    expect(progressParts(ONE, 1_900_000_000_000, say).at(-1)).toBe("0:00 left");
    expect(progressParts(THREE, 0, say)).toEqual([
      "Finished", "step 2500 of 2500", "best bleu 9.000 at step 2500", "5000 tokens/s", "took 1:02:05",
    ]);
    expect(progressParts(trainingCard({ state: "failed", step: 7 }), 0, say)).toEqual(["Failed", "step 7 of 2500"]);
  });
  it("says it in Chinese", () => {
    language.value = "zh";
    expect(progressParts(ONE, 1_800_000_000_000 - 65_000, say)).toEqual([
      "训练中", "第 2050 步，共 2500 步", "最佳 bleu 27.20（第 2000 步）", "2135 词元/秒", "剩余 1:05",
    ]);
  });
});

describe("openings", () => {
  it("ask once for a step, and again for one that failed", async () => {
    const asked = vi.fn<Server["openTraining"]>().mockRejectedValueOnce(new Error("busy")).mockResolvedValue(fake(WORDS));
    const open = stepSources({ ...trainings(WORDS), openTraining: asked });
    await expect(open("one", 5, 0)).rejects.toThrow("busy");
    await open("one", 5, 0);
    await open("one", 5, 0);
    expect(asked).toHaveBeenCalledTimes(2);
  });
});

type Probe = { step(): number | null; steps(): number[] };
const settled = async (): Promise<void> => { for (let i = 0; i < 60; i++) await Promise.resolve(); };
const shown = async (server: Server | null) => {
  const el = document.body.appendChild(document.createElement("div"));
  const choice = new Choice({ ...FIRST, view: "training" });
  const view = training(
    { el, source: fake(WORDS), other: null, choice, say, theme: () => LIGHT, server, signal: stop.signal }
  );
  await settled();
  const press = (name: string): void => el.querySelector<HTMLElement>(`[data-do="${name}"]`)!.click();
  return { el, choice, view, press, probe: (el as unknown as { regard: Probe }).regard };
};

describe("training", () => {
  it("says what it needs where there is no server, no run, or an error", async () => {
    expect((await shown(null)).el.textContent).toContain("regard serve");
    expect((await shown(trainings(WORDS, []))).el.textContent).toContain("No training run with maps");
    const broken: Server = { ...trainings(WORDS), trainings: () => Promise.reject(new Error("lost")) };
    expect((await shown(broken)).el.querySelector('[role="alert"]')!.textContent).toContain("lost");
    const unopened: Server = { ...trainings(WORDS), openTraining: () => Promise.reject(new Error("gone")) };
    expect((await shown(unopened)).el.querySelector('.map [role="alert"]')!.textContent).toContain("gone");
  });
  it("begins with the last step and moves by buttons, slider and runs", async () => {
    const { el, press, probe } = await shown(trainings(WORDS));
    expect(probe.step()).toBe(2000);
    press("back");
    expect(probe.step()).toBe(1000);
    const slide = el.querySelector<HTMLInputElement>('[data-do="step"]')!;
    slide.value = "1";
    slide.dispatchEvent(new Event("input"));
    expect(probe.step()).toBe(100);
    expect(el.querySelector("output")!.textContent).toBe("Step 100");
    const runs = el.querySelector<HTMLSelectElement>('[data-do="run"]')!;
    runs.value = "1";
    runs.dispatchEvent(new Event("change"));
    expect(probe.step()).toBe(20);
    expect(el.textContent).toContain("has no curves yet");
  });
  it("plays from the beginning to the end and can be paused", async () => {
    vi.useFakeTimers();
    const { press, probe } = await shown(trainings(WORDS));
    press("play");
    expect(probe.step()).toBe(0);
    await vi.advanceTimersByTimeAsync(1500);
    expect(probe.step()).toBe(100);
    press("play");
    await vi.advanceTimersByTimeAsync(5000);
    expect(probe.step()).toBe(100);
    press("play");
    await vi.advanceTimersByTimeAsync(20_000);
    expect(probe.step()).toBe(2000);
  });
  it("says that a step has no such head, and shows it again when there is one", async () => {
    const { el, choice } = await shown(trainings(WORDS));
    choice.pick({ head: 7 });
    el.querySelector<HTMLElement>('[data-do="back"]')!.click();
    await settled();
    expect(el.textContent).toContain("no layer 0 with head 7");
    choice.pick({ head: 1 });
    await settled();
    expect(el.textContent).not.toContain("no layer 1");
  });
  it("tells whose map is shown, for whoever says more of it", async () => {
    const { view, press } = await shown(trainings(WORDS));
    expect(view.of!.value!.info.name).toBe("one 2000");
    press("back");
    await settled();
    expect(view.of!.value!.info.name).toBe("one 1000");
    const unopened: Server = { ...trainings(WORDS), openTraining: () => Promise.reject(new Error("gone")) };
    expect((await shown(unopened)).view.of!.value).toBeNull();
    expect((await shown(null)).view.of!.value).toBeNull();
  });
  it("gives the scores as a table", async () => {
    const { view } = await shown(trainings(WORDS));
    const table = await view.table!();
    expect(table[0]).toEqual(["Step", "Training loss", "Validation bleu", "Validation loss", "Tokens per second"]);
    expect(table.find(([step]) => step === 1000)).toEqual([1000, "", 24.5, 1.4, ""]);
    expect(table.find(([step]) => step === 500)).toEqual([500, 2.5, 14, 2.2, 2100]);
  });
  it("compares two runs: their curves over each other, and the settings that differ", async () => {
    const { el, view } = await shown(trainings(WORDS)), other = el.querySelector<HTMLSelectElement>('[data-do="compare"]')!;
    const choose = (value: string): void => { other.value = value; other.dispatchEvent(new Event("change")); };
    expect([...other.options].map((one) => one.textContent)).toEqual(["no other run", "induction", "no attention"]);
    choose("2");
    expect([...el.querySelectorAll(".runs > span")].map((one) => one.textContent)).toEqual(["en→zh, small", "no attention"]);
    expect([...el.querySelectorAll(".settings tr")].map((row) => [...row.children].map((cell) => cell.textContent))).toEqual([
      ["Setting", "en→zh, small", "no attention"], ["width", "128", "64"], ["heads", "4", "–"], ["cell", "–", "gru"],
    ]);
    expect(el.querySelectorAll(".charts path").length).toBe(8);
    expect((await view.table!())[0]).toContain("Validation bleu, no attention");
    expect(await view.svg!()).toContain("no attention");
    choose("-1");
    expect(el.querySelector(".settings")).toBeNull();
    expect(el.querySelectorAll(".charts path").length).toBe(4);
  });
  it("lets a run that is compared become the one that is looked at", async () => {
    const { el } = await shown(trainings(WORDS)), list = (name: string): HTMLSelectElement => el.querySelector(`[data-do="${name}"]`)!;
    list("compare").value = "2";
    list("compare").dispatchEvent(new Event("change"));
    list("run").value = "2";
    list("run").dispatchEvent(new Event("change"));
    expect(el.querySelector(".runs")).toBeNull();
    expect(list("compare").value).toBe("-1");
    expect(el.textContent).toContain("no maps: nothing in its model attends");
    expect(el.querySelectorAll(".charts svg").length).toBe(3);
    expect(el.querySelector("output")!.textContent).toBe("");
    el.querySelector<SVGElement>(".charts svg")!.dispatchEvent(new MouseEvent("click"));
    expect(el.querySelector(".map")!.textContent).toContain("no maps");
  });
  it("lets the time that is left go on by itself, and keeps a list that somebody has opened", async () => {
    vi.useFakeTimers({ now: 1_800_000_000_000 - 100_000 });
    let cards = CARDS;
    const { el } = await shown({ ...trainings(WORDS), trainings: async () => cards });
    expect(el.querySelector(".progress")!.textContent).toContain("1:40 left");
    await vi.advanceTimersByTimeAsync(1000);
    expect(el.querySelector(".progress")!.textContent).toContain("1:39 left");
    const option = el.querySelector('[data-do="compare"] option')!;
    cards = [{ ...ONE, step: 2100, losses: [...ONE.losses, [2100, 0.7]] }, TWO, THREE];
    await vi.advanceTimersByTimeAsync(2100);
    expect(el.querySelector(".progress")!.textContent).toContain("step 2100 of 2500");
    expect(el.querySelector('[data-do="compare"] option')).toBe(option);
  });
  it("follows a run that goes on, also one that had not begun, and stays at a step that was chosen", async () => {
    vi.useFakeTimers();
    let cards: TrainingCard[] = [];
    const grown = (...steps: number[]): TrainingCard[] => [
      trainingCard({ id: "new", name: "copy-1", steps, examples: 1, losses: steps.map((step) => [step, 9 - step]) }),
    ];
    const { el, press, probe } = await shown({ ...trainings(WORDS), trainings: async () => cards });
    expect(el.textContent).toContain("No training run with maps");
    cards = grown(0, 1);
    await vi.advanceTimersByTimeAsync(2100);
    expect(probe.steps()).toEqual([0, 1]);
    expect(probe.step()).toBe(1);
    expect(el.querySelector(".charts")!.textContent).toContain("Training loss");
    cards = grown(0, 1, 2);
    await vi.advanceTimersByTimeAsync(2100);
    expect(probe.step()).toBe(2);
    press("back");
    cards = grown(0, 1, 2, 5);
    await vi.advanceTimersByTimeAsync(2100);
    expect([probe.step(), probe.steps().length]).toEqual([1, 4]);
    cards = [];
    await vi.advanceTimersByTimeAsync(2100);
    expect(el.textContent).toContain("No training run with maps");
  });
  it("asks no more once it is left, and bears an answer that does not come", async () => {
    vi.useFakeTimers();
    const asked = vi.fn<Server["trainings"]>().mockResolvedValueOnce(CARDS).mockRejectedValue(new Error("lost"));
    const { probe } = await shown({ ...trainings(WORDS), trainings: asked });
    await vi.advanceTimersByTimeAsync(4100);
    expect(asked.mock.calls.length).toBe(3);
    expect(probe.step()).toBe(2000);
    stop.abort();
    await vi.advanceTimersByTimeAsync(9000);
    expect(asked.mock.calls.length).toBe(3);
  });
});
