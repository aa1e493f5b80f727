/** The controls of a training, the map at a step, and the scores beside it. */
import { sentenceOf } from "../../language/errorText";
import type { Server, TrainingCard } from "../../hosts/server";
import { svgDocument } from "../../paint/svg";
import { shortened } from "../../paint/text";
import type { Source } from "../../trace/source";
import { mapPanel } from "../map/map";
import { h } from "../parts/element";
import { asElement, asMarkup, shape } from "../parts/shape";
import type { Scene, Shown } from "../parts/view";
import { CHART, chartOf, type Line, linesOf, spanOf, stepAt } from "./chart";
import { openings } from "./openings";

const BEAT = 800; // milliseconds that a step stands while it plays

interface MapProbe {
  readonly settled: () => Promise<void>;
  readonly weight: (query: number, key: number) => number | null;
}

export interface Seen {
  readonly renew: (cards: readonly TrainingCard[]) => void; // the runs as they are now
  readonly step: () => number | null;
  readonly steps: () => readonly number[];
  readonly map: () => MapProbe | null;
  readonly settled: () => Promise<void>;
  readonly svg: () => Promise<string>;
  readonly table: () => readonly (readonly (string | number)[])[];
}

/** The controls, the map and the scores of the trainings that there are; `tell` hears whose map is shown. */
export function player(
  scene: Scene, server: Server, given: readonly TrainingCard[], root: HTMLElement, tell: (source: Source | null) => void,
): Seen {
  const { choice, say, signal } = scene;
  const open = openings(server);
  let cards = given, card = cards[0]!, at = card.steps.length - 1, example = 0, playing = false;
  let panel: { readonly shown: Shown; readonly box: HTMLElement; readonly stop: AbortController } | null = null;
  let asked = 0, arriving: Promise<void> = Promise.resolve(), timer: ReturnType<typeof setTimeout> | undefined;
  signal.addEventListener("abort", () => { clearTimeout(timer); panel?.stop.abort(); }, { once: true });

  const select = (name: string, act: (value: number) => void): HTMLSelectElement => {
    const one = h("select", { "data-do": name });
    one.addEventListener("change", () => act(Number(one.value)));
    return one;
  };
  const runs = select(
    "run", (value) => { card = cards[value]!; at = card.steps.length - 1; example = 0; pause(); show(); },
  );
  const examples = select("example", (value) => { example = value; show(); });
  const slide = h("input", { type: "range", min: 0, step: 1, "data-do": "step" });
  slide.addEventListener("input", () => {
    const wanted = Number(slide.value); // before the controls are set anew
    pause();
    to(wanted);
  });
  slide.addEventListener("keydown", (event) => event.stopPropagation()); // its arrows are its own
  const where = h("output", { "aria-live": "polite" });
  const button = (name: string, act: () => void): HTMLButtonElement => h(
    "button", { type: "button", "data-do": name, onclick: act },
  );
  const back = button("back", () => { pause(); to(at - 1); }), forward = button(
    "forward", () => { pause(); to(at + 1); },
  );
  const play = button("play", () => (playing ? pause() : start()));
  const read = h("p", { class: "read" }), runLabel = h("label"), exampleLabel = h("label");
  const map = h("div", { class: "map" }), scores = h("div", { class: "scores" });
  root.replaceChildren(
    h(
      "div", { class: "top" }, read, runLabel, exampleLabel,
      h("div", { class: "transport" }, back, play, forward, slide, where),
    ),
    h("div", { class: "body" }, map, scores),
  );

  const to = (next: number): void => {
    at = Math.max(0, Math.min(card.steps.length - 1, next));
    show();
  };
  const pause = (): void => {
    playing = false;
    clearTimeout(timer);
    dressControls();
  };
  const start = (): void => {
    playing = true;
    if (at >= card.steps.length - 1) at = -1; // from the beginning
    beat();
  };
  /** The next step, once this one is drawn. */
  const beat = (): void => {
    if (!playing || signal.aborted) return;
    if (at >= card.steps.length - 1) return pause();
    to(at + 1);
    void arriving.then(() => { timer = setTimeout(beat, BEAT); });
  };

  const dressControls = (): void => {
    read.textContent = say("training.read");
    runLabel.replaceChildren(say("training.run"), runs);
    exampleLabel.replaceChildren(say("training.example"), examples);
    exampleLabel.hidden = card.examples < 2;
    runs.replaceChildren(...cards.map((one, i) => h("option", { value: i }, shortened(one.name, 60))));
    runs.value = String(cards.indexOf(card));
    examples.replaceChildren(
      ...Array.from({ length: Math.min(card.examples, 200) }, (_, i) => h("option", { value: i }, String(i + 1)))
    );
    examples.value = String(example);
    slide.max = String(card.steps.length - 1);
    slide.value = String(at);
    slide.setAttribute("aria-label", say("training.step"));
    slide.setAttribute("aria-valuetext", String(card.steps[at]));
    where.textContent = say("training.at", { step: card.steps[at] ?? "" });
    for (const [one, sign, words] of [[back, "←", "training.back"], [forward, "→", "training.forward"]] as const) {
      one.textContent = sign;
      one.title = say(words);
      one.setAttribute("aria-label", say(words));
    }
    back.disabled = at <= 0;
    forward.disabled = at >= card.steps.length - 1;
    play.textContent = say(playing ? "training.pause" : "training.play");
    play.disabled = card.steps.length < 2;
  };
  const lines = (): Line[] => linesOf(card, say("training.loss"));
  const drawScores = (): void => {
    const drawn = lines(), span = spanOf(card), theme = scene.theme();
    const charts = drawn.map((line, i) => {
      const whole = shape(
        "svg",
        {
          width: CHART.width, height: CHART.height, viewBox: `0 0 ${CHART.width} ${CHART.height}`, role: "img",
          "aria-label": line.name,
        },
        chartOf(line, span, card.steps[at] ?? 0, i, theme),
      );
      const chart = asElement(whole);
      chart.addEventListener(
        "click",
        (event) => { pause(); to(stepAt(card.steps, span, event.clientX - chart.getBoundingClientRect().left)); },
      );
      return chart;
    });
    scores.replaceChildren(
      h("h3", {}, say("training.scores")),
      drawn.length === 0 ? h(
        "p", { class: "pale" }, say("training.noScores"),
      ) : h("div", { class: "charts" }, ...charts),
    );
  };

  const show = (): void => {
    dressControls();
    drawScores();
    const mine = ++asked, step = card.steps[at]!;
    arriving = open(card.id, step, example).then(
      (source) => (mine === asked && !signal.aborted ? put(source) : undefined),
      (error: unknown) => {
        if (mine !== asked || signal.aborted) return;
        pause();
        replace(
          h(
            "p", { class: "message", role: "alert" },
            say("training.failed", { why: sentenceOf(error) }),
          )
        );
      },
    );
    const next = card.steps[at + 1];
    if (playing && next !== undefined) open(card.id, next, example).catch(() => undefined); // ready when its turn comes
  };
  const replace = (words: HTMLElement): void => {
    tell(null);
    panel?.stop.abort();
    panel = null;
    map.replaceChildren(words);
  };
  /** The new map is drawn below the old one, which goes when it is done: no flicker. */
  const put = async (source: Source): Promise<void> => {
    tell(source); // who keeps the choice within what is seen may move it now
    const { layer, head } = choice.picked.peek(), shapeOf = source.info.layers[layer]?.shape;
    if (!shapeOf || head >= shapeOf[1]) return replace(
      h("p", { class: "message", role: "status" }, say("training.layerless", { layer, head }))
    );
    const stop = new AbortController(), box = h("div", {}), old = panel;
    if (!old) map.replaceChildren();
    map.prepend(box);
    const shown = mapPanel(
      { ...scene, source, signal: stop.signal }, { el: box, title: say("training.at", { step: card.steps[at]! }) },
    );
    panel = { shown, box, stop };
    await Promise.race([(shown.probe as unknown as MapProbe).settled(), new Promise((wake) => setTimeout(wake, 600))]);
    old?.stop.abort();
    old?.box.remove();
  };

  /** A run that goes on: who looks at its last step is shown the next one, who looks at another stays there. */
  const renew = (next: readonly TrainingCard[]): void => {
    const found = next.find((one) => one.id === card.id);
    const last = at === card.steps.length - 1, step = card.steps[at];
    cards = next;
    card = found ?? next[0]!;
    const same = found ? card.steps.indexOf(step ?? -1) : -1;
    const moved = same < 0 || (last && !playing && same < card.steps.length - 1);
    at = moved ? card.steps.length - 1 : same;
    example = Math.min(example, card.examples - 1);
    if (moved) return show();
    dressControls();
    drawScores();
  };

  let first = "";
  choice.watch(() => {
    const { layer, head } = choice.picked.value, theme = scene.theme();
    const now = [layer, head, theme.dark, say("training.read")].join(" ");
    if (now === first) return;
    const fresh = first === "" || panel === null; // a panel follows the choice by itself
    first = now;
    if (fresh) show();
    else {
      dressControls();
      drawScores();
    }
  }, signal);

  return {
    renew,
    step: () => card.steps[at] ?? null,
    steps: () => card.steps,
    map: () => (panel?.shown.probe as unknown as MapProbe | undefined) ?? null,
    settled: async () => {
      await arriving;
      await (panel?.shown.probe as unknown as MapProbe | undefined)?.settled();
    },
    svg: async () => {
      const theme = scene.theme(), drawn = lines(), span = spanOf(card);
      const picture = panel?.shown.svg ? await panel.shown.svg() : "";
      const size = /width="([\d.]+)" height="([\d.]+)"/.exec(picture);
      const wide = Number(size?.[1] ?? 0), tall = Math.max(Number(size?.[2] ?? 0), drawn.length * CHART.height);
      const charts = drawn.map((line, i) => {
        const chart = chartOf(line, span, card.steps[at] ?? 0, i, theme);
        return asMarkup(shape("g", { transform: `translate(${wide} ${i * CHART.height})` }, chart));
      });
      const ground = asMarkup(shape("rect", { width: wide + CHART.width, height: tall, fill: theme.ground }));
      return svgDocument(wide + CHART.width, tall, [ground, { markup: picture }, ...charts]);
    },
    table: () => {
      const drawn = lines(), steps = new Set(drawn.flatMap((line) => line.points.map((point) => point.step)));
      const value = (line: Line, step: number): number | "" =>
        line.points.find((point) => point.step === step)?.value ?? "";
      return [
        [say("training.step"), ...drawn.map((line) => line.name)],
        ...[...steps].sort((a, b) => a - b).map((step) => [step, ...drawn.map((line) => value(line, step))]),
      ];
    },
  };
}
