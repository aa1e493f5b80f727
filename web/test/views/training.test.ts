import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Choice, FIRST } from "../../src/choose/choice";
import type { Server } from "../../src/hosts/server";
import type { TrainingCard } from "../../src/trace/messages";
import { LIGHT } from "../../src/paint/theme";
import { say } from "../../src/language/language";
import { training } from "../../src/views/training/training";
import { CHART, chartOf, linesOf, chartScales, spanOf, stepAt } from "../../src/views/training/chart";
import { stepSources } from "../../src/views/training/stepSources";
import { fake } from "../fake";
import { CARDS, trainings } from "./numbers.fakes";

const WORDS = ["a", "b", "c", "d"];
let stop: AbortController;
beforeEach(() => { stop = new AbortController(); });
afterEach(() => { stop.abort(); document.body.replaceChildren(); vi.useRealTimers(); });

describe("scores", () => {
  it("are one line each, over the steps that have them", () => {
    const lines = linesOf(
      { ...CARDS[0]!, scores: [{ loss: 3 }, {}, { loss: 2, bleu: 1 }, { loss: NaN }, { bleu: 4 }], losses: [] }, "training",
    );
    expect(
      lines.map(({ name, points }) => [name, points.map((point) => point.step)])
    ).toEqual([["loss", [0, 500]], ["bleu", [500, 2000]]]);
    expect(linesOf(CARDS[1]!, "training")).toEqual([]);
  });
  it("come after the loss of training, which also stands between and after the steps that are shown", () => {
    const [loss, ...others] = linesOf(CARDS[0]!, "training loss");
    expect(loss!.name).toBe("training loss");
    expect(loss!.points.map(({ at, step }) => [at, step])).toEqual([[-1, 1], [-1, 50], [2, 500], [4, 2000], [-1, 2050]]);
    expect(others.map((line) => line.name)).toEqual(["loss", "bleu"]);
    expect(spanOf(CARDS[0]!)).toEqual([0, 2050]);
    expect(spanOf({ ...CARDS[0]!, steps: [], losses: [] })).toEqual([0, 1]);
  });
  it("stand within the chart, the highest on top", () => {
    const span = spanOf(CARDS[0]!), [, loss] = linesOf(CARDS[0]!, "training"), { x, y, low, high } = chartScales(loss!, span);
    expect([low, high]).toEqual([1.1, 6.2]);
    expect(y(high)).toBeLessThan(y(low));
    expect(x(2000)).toBeLessThan(CHART.width);
    expect(stepAt(CARDS[0]!.steps, span, x(500) + 3)).toBe(2);
    const flat = chartScales({ name: "x", points: [{ at: 0, step: 0, value: 5 }] }, [0, 0]);
    expect(Number.isFinite(flat.y(5)) && Number.isFinite(flat.x(0))).toBe(true);
    expect(JSON.stringify(chartOf(loss!, span, 1000, 0, LIGHT))).toContain("1.400");
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
    expect(el.textContent).toContain("has no scores");
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
    expect(table[0]).toEqual(["Step", "Training loss", "loss", "bleu"]);
    expect(table.find(([step]) => step === 1000)).toEqual([1000, "", 1.4, 24.5]);
    expect(table.find(([step]) => step === 500)).toEqual([500, 2.5, 2.2, 14]);
  });
  it("follows a run that goes on, also one that had not begun, and stays at a step that was chosen", async () => {
    vi.useFakeTimers();
    let cards: TrainingCard[] = [];
    const grown = (...steps: number[]): TrainingCard[] => [
      { id: "new", name: "copy-1", steps, examples: 1, scores: [], losses: steps.map((step) => [step, 9 - step]) },
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
