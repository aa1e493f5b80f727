/** A proof on paper: every step from q and k to what the head gives, with the model's own numbers. */
import { sentenceOf } from "../../language/errorText";
import { shortened } from "../../paint/text";
import { type HeadAt, tokensOf } from "../../trace/source";
import { diagramElement, diagramFile, stationsOf } from "./diagram";
import { h } from "../parts/element";
import { dress } from "../parts/sheet";
import { formulaOf } from "./formulas";
import { colour } from "../parts/plainStyle";
import { PAPER } from "./paper";
import { sentenceFile } from "../parts/shape";
import { aboutOf, bodyOf, isRoot } from "./steps";
import { type Page, FEW } from "./tables";
import { type Value, valueIn } from "./value";
import { type StepName, type Work, workOf } from "./work";
import type { Scene, Shown, View } from "../parts/view";

/** Shows how one weight came about. Without a choice: the last query and its strongest key. */
export const numbers: View = (scene: Scene): Shown => {
  const { el, source, choice, say, signal } = scene;
  dress(el, PAPER, signal);
  const room = (name: string): HTMLElement => h("div", { class: name });
  const top = room("top"), diagram = room("diagram"), steps = room("steps");
  const read = h("p", { class: "read" });
  const paper = h("div", { class: "rg rg-numbers" }, top, read, diagram, steps);
  el.replaceChildren(paper);

  let work: Work | null = null;
  let asked: { readonly name: string; readonly stop: AbortController } | null = null;
  let now: StepName | null = null; // the step in hand
  let all = true, open = false, width = 0;
  const sections = new Map<StepName, HTMLElement>();

  const at = (): HeadAt => {
    const { layer, batch, head } = choice.picked.peek();
    return { layer, batch, head };
  };
  const names = (which: "queries" | "keys") => {
    const tokens = tokensOf(source.info, at().layer, at().batch, which);
    return (place: number): string => tokens?.shown[place] ?? String(place);
  };
  const page = (): Page => ({ say, theme: scene.theme(), open, queries: names("queries"), keys: names("keys") });
  const title = (of: Work): string =>
    say(
      "numbers.cell",
      {
        query: `${of.query} “${shortened(names("queries")(of.query), 24)}”`,
        key: `${of.key} “${shortened(names("keys")(of.key), 24)}”`,
      },
    );

  /** Says a sentence instead of numbers. */
  const tell = (words: string, alert: boolean): void => {
    top.replaceChildren();
    diagram.replaceChildren();
    read.textContent = "";
    steps.replaceChildren(h("p", { class: "message", role: alert ? "alert" : "status" }, words));
  };

  const go = (step: StepName): void => {
    now = step;
    mark();
    const section = steps.querySelector<HTMLElement>(`section[data-step="${step}"]`);
    if (section) paper.scrollTop = section.offsetTop - paper.offsetTop - top.offsetHeight - 8;
  };
  const walk = (by: number): void => {
    if (!work) return;
    const place = work.steps.indexOf(now ?? work.steps[0]!) + by;
    const step = work.steps[place];
    if (step) go(step);
  };

  const bar = (of: Work): HTMLElement[] => {
    const place = of.steps.indexOf(now!);
    const button = (name: "back" | "forward", by: number, off: boolean): HTMLElement =>
      h(
        "button", { type: "button", "data-do": name, disabled: off, onclick: () => walk(by) },
        `${by < 0 ? "← " : ""}${say(`numbers.${name}`)}${by > 0 ? " →" : ""}`,
      );
    const tick = (name: "all" | "channels", on: boolean, turn: (on: boolean) => void): HTMLElement => {
      const box = h("input", { type: "checkbox", "data-do": name });
      box.checked = on;
      box.addEventListener("change", () => turn(box.checked));
      return h("label", {}, box, say(`numbers.${name}`));
    };
    const long = Math.max(of.q ? of.numbers.d : 0, of.v ? of.numbers.e : 0) > FEW;
    const group = h(
      "div", { class: "walk", role: "group", "aria-label": say("numbers.walk") },
      button("back", -1, place <= 0),
      h(
        "span", { class: "place", "aria-live": "polite" },
        say("numbers.place", { step: place + 1, steps: of.steps.length }),
      ),
      button("forward", 1, place >= of.steps.length - 1),
      tick("all", all, (on) => { all = on; mark(); }),
      long && tick("channels", open, (on) => { open = on; draw(); }),
    );
    return [h("span", { class: "which" }, title(of)), group];
  };

  const sectionOf = (step: StepName, number: number, of: Work, on: Page): HTMLElement => {
    const formula = formulaOf(step, {
      scale: isRoot(of) ? "root" : "own", sink: of.numbers.sink !== null,
      blocked: say("numbers.may"), otherwise: say("numbers.otherwise"),
    });
    return h(
      "section", { "data-step": step },
      h("h3", {}, h("span", { class: "number" }, String(number)), say(`numbers.name.${step}`)),
      formula, h("p", { class: "about" }, aboutOf(step, of, on)), ...bodyOf(step, of, on),
    );
  };

  /** The step in hand, and as many sections as are wanted; each is made once. */
  const mark = (): void => {
    if (!work) return;
    const of = work, step = now ?? of.steps[0]!;
    const held = (paper.getRootNode() as Document | ShadowRoot).activeElement;
    const focus = held && paper.contains(held) ? held.getAttribute("data-do") : null;
    top.replaceChildren(...bar(of));
    for (const station of diagram.querySelectorAll(".station"))
      station.classList.toggle("now", station.getAttribute("data-step") === step);
    const wanted = all ? of.steps.length : of.steps.indexOf(step) + 1, on = page();
    of.steps.forEach((one, i) => {
      if (i >= wanted) return sections.get(one)?.remove();
      const section = sections.get(one) ?? sectionOf(one, i + 1, of, on);
      sections.set(one, section);
      section.classList.toggle("now", one === step);
      if (one === step) section.setAttribute("aria-current", "step");
      else section.removeAttribute("aria-current");
      if (section.parentElement !== steps) steps.append(section); // what is shown is always the first so many
    });
    if (focus) paper.querySelector<HTMLElement>(`[data-do="${focus}"]:not(:disabled)`)?.focus({ preventScroll: true });
  };
  const draw = (): void => {
    if (!work) return;
    const of = work;
    if (now === null || !of.steps.includes(now)) now = of.steps[0]!;
    const implied = source.info.layers[at().layer]?.how === "implied" ? ` ${say("numbers.implied")}` : "";
    read.textContent = say("numbers.read") + implied;
    sections.clear();
    steps.replaceChildren();
    map();
    mark();
  };
  const map = (): void => {
    if (!work) return;
    width = paper.clientWidth || 900;
    diagram.replaceChildren(
      diagramElement(stationsOf(work, say), width - 32, scene.theme(), say("numbers.diagram"), go)
    );
  };

  const ask = async (query: number, picked: number | null, stop: AbortSignal): Promise<void> => {
    const place = at();
    const layer = source.info.layers[place.layer]!;
    const key = picked ?? Math.max(0, (await source.top(place, query, 1, 1, stop)).keys[0] ?? 0);
    const [found, row] = await Promise.all([source.numbers(place, query, key, stop), source.row(place, query, stop)]);
    if (stop.aborted) return;
    work = workOf(layer, found, row, query, key);
    draw();
  };

  choice.watch(() => {
    const { layer, batch, head, query, key } = choice.picked.value;
    colour(paper, scene.theme());
    say("numbers.read"); // so that a change of language draws again
    const shape = source.info.layers[layer]?.shape;
    const there = shape && head < shape[1] && batch < shape[0] && shape[2] > 0 && shape[3] > 0;
    if (!there) {
      asked?.stop.abort();
      asked = work = null;
      return tell(say("numbers.empty"), false);
    }
    const row = Math.min(query ?? shape[2] - 1, shape[2] - 1);
    const column = key === null ? null : Math.min(key, shape[3] - 1);
    const name = [layer, batch, head, row, column].join(" ");
    if (asked?.name === name) return draw();
    asked?.stop.abort();
    const stop = new AbortController();
    asked = { name, stop };
    if (!work) tell(say("numbers.loading"), false);
    paper.setAttribute("aria-busy", "true");
    ask(row, column, stop.signal)
      .catch((error: unknown) => {
        if (stop.signal.aborted) return;
        work = null;
        tell(say("numbers.failed", { why: sentenceOf(error) }), true);
      })
      .finally(() => { if (!stop.signal.aborted) paper.removeAttribute("aria-busy"); });
  }, signal);

  const placed = (event: Event): { query?: number; key?: number } | null => {
    const cell = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-key], [data-query]") : null;
    if (!cell || !steps.contains(cell)) return null;
    const { query, key } = cell.dataset;
    return {
      ...(query === undefined ? {} : { query: Number(query) }), ...(key === undefined ? {} : { key: Number(key) })
    };
  };
  steps.addEventListener("click", (event) => {
    const place = placed(event);
    if (!place || !work || getSelection()?.isCollapsed === false) return; // somebody marks text to copy it
    choice.pick({ query: work.query, key: work.key, ...place });
  });
  steps.addEventListener("pointerover", (event) => {
    const place = placed(event);
    choice.point(place && { layer: at().layer, head: at().head, ...place });
  });
  steps.addEventListener("pointerleave", () => choice.point(null));
  paper.addEventListener("keydown", (event) => {
    const target = event.target as Element;
    if (
      event.altKey || event.ctrlKey || event.metaKey || !(target.closest(".walk") || target.closest(".station"))
    ) return;
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    event.preventDefault();
    event.stopPropagation(); // the shell would move the selection
    walk(event.key === "ArrowLeft" ? -1 : 1);
  });
  const sized = new ResizeObserver(() => { if (work && paper.clientWidth !== width) { map(); mark(); } });
  sized.observe(paper);
  signal.addEventListener("abort", () => { sized.disconnect(); asked?.stop.abort(); }, { once: true });

  const probe = {
    value: (...about: Value): number => valueIn(work, about),
    steps: (): readonly StepName[] => work?.steps ?? [],
    cell: (): readonly [number, number] | null => (work ? [work.query, work.key] : null),
    go,
  };
  Object.assign(el, { regard: probe });
  return {
    probe,
    svg: async () => (
      work ? diagramFile(
        stationsOf(work, say), title(work), scene.theme(),
      ) : sentenceFile(steps.textContent ?? "", scene.theme())
    ),
    table: async () => {
      if (!work) return [];
      const { row } = work, keys = names("keys");
      return [
        [say("key"), say("numbers.keyText"), say("score"), say("weight"), say("numbers.allowed")],
        ...Array.from(
          row.weights, (weight, key) => [key, keys(key), row.scores?.[key] ?? "", weight, row.allowed[key] ? 1 : 0],
        ),
      ];
    },
  };
};
