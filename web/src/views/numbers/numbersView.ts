/** The computation of one cell as it is shown: a diagram, and a section per step. */
import { shortenText } from "../../paint/text";
import { type HeadAt, tokensOf } from "../../trace/source";
import { h } from "../parts/element";
import type { Scene } from "../parts/view";
import { diagramElement, stationsOf } from "./diagram";
import { formulaOf } from "./formulas";
import { aboutOf, bodyOf, isRoot } from "./steps";
import type { Page } from "./tables";
import { toolbar } from "./toolbar";
import { type StepName, type Work, workOf } from "./work";

const part = (name: string): HTMLElement => h("div", { class: name });

export class NumbersView {
  readonly top = part("top");
  readonly steps = part("steps");
  readonly paper: HTMLElement;
  work: Work | null = null;
  private readonly diagram = part("diagram");
  private readonly read = h("p", { class: "read" });
  private readonly sections = new Map<StepName, HTMLElement>(); // each is made once
  private step: StepName | null = null; // in hand
  private showsAll = true;
  private showsChannels = false;
  private width = 0; // of the paper when the diagram was drawn

  constructor(readonly scene: Scene) {
    this.paper = h("div", { class: "rg rg-numbers" }, this.top, this.read, this.diagram, this.steps);
  }

  /** The head that is picked. */
  at(): HeadAt {
    const { layer, batch, head } = this.scene.choice.picked.peek();
    return { layer, batch, head };
  }

  /** The token at a place. */
  names(which: "queries" | "keys"): (place: number) => string {
    const tokens = tokensOf(this.scene.source.info, this.at().layer, this.at().batch, which);
    return (place) => tokens?.shown[place] ?? String(place);
  }

  title({ query, key }: Work): string {
    const quoted = (which: "queries" | "keys", place: number): string =>
      `${place} “${shortenText(this.names(which)(place), 24)}”`;
    return this.scene.say("numbers.cell", { query: quoted("queries", query), key: quoted("keys", key) });
  }

  /** A sentence in place of numbers. */
  showMessage(words: string, isAlert: boolean): void {
    this.top.replaceChildren();
    this.diagram.replaceChildren();
    this.read.textContent = "";
    this.steps.replaceChildren(h("p", { class: "message", role: isAlert ? "alert" : "status" }, words));
  }

  /** Asks for the numbers of a cell and shows them; without a key, of the strongest one. */
  async load(query: number, picked: number | null, stop: AbortSignal): Promise<void> {
    const { source } = this.scene, at = this.at(), layer = source.info.layers[at.layer]!;
    const key = picked ?? Math.max(0, (await source.top(at, query, 1, 1, stop)).keys[0] ?? 0);
    const [numbers, row] = await Promise.all([source.numbers(at, query, key, stop), source.row(at, query, stop)]);
    if (stop.aborted) return;
    this.work = workOf(layer, numbers, row, query, key);
    this.draw();
  }

  /** All of it anew. */
  draw(): void {
    const { work } = this, { say, source } = this.scene;
    if (!work) return;
    if (this.step === null || !work.steps.includes(this.step)) this.step = work.steps[0]!;
    const implied = source.info.layers[this.at().layer]?.how === "implied" ? ` ${say("numbers.implied")}` : "";
    this.read.textContent = say("numbers.read") + implied;
    this.sections.clear();
    this.steps.replaceChildren();
    this.drawDiagram();
    this.update();
  }

  private drawDiagram(): void {
    const { say, theme } = this.scene;
    if (!this.work) return;
    this.width = this.paper.clientWidth || 900;
    const stations = stationsOf(this.work, say);
    this.diagram.replaceChildren(
      diagramElement(stations, this.width - 32, theme(), say("numbers.diagram"), (step) => this.goTo(step)),
    );
  }

  resize(): void {
    if (!this.work || this.paper.clientWidth === this.width) return;
    this.drawDiagram();
    this.update();
  }

  goTo(step: StepName): void {
    this.step = step;
    this.update();
    const section = this.steps.querySelector<HTMLElement>(`section[data-step="${step}"]`);
    if (section) this.paper.scrollTop = section.offsetTop - this.paper.offsetTop - this.top.offsetHeight - 8;
  }

  walk(by: number): void {
    if (!this.work) return;
    const { steps } = this.work, step = steps[steps.indexOf(this.step ?? steps[0]!) + by];
    if (step) this.goTo(step);
  }

  /** Marks the step in hand and shows as many sections as are wanted; who had the focus keeps it. */
  private update(): void {
    const { work, paper } = this;
    if (!work) return;
    const step = this.step ?? work.steps[0]!;
    const active = (paper.getRootNode() as Document | ShadowRoot).activeElement;
    const focus = active && paper.contains(active) ? active.getAttribute("data-do") : null;
    this.top.replaceChildren(...this.toolbar(work, step));
    for (const station of this.diagram.querySelectorAll(".station"))
      station.classList.toggle("now", station.getAttribute("data-step") === step);
    this.showSections(work, step);
    if (focus) paper.querySelector<HTMLElement>(`[data-do="${focus}"]:not(:disabled)`)?.focus({ preventScroll: true });
  }

  private toolbar(work: Work, step: StepName): HTMLElement[] {
    return toolbar(work, {
      title: this.title(work), step, showsAll: this.showsAll, showsChannels: this.showsChannels,
      walk: (by) => this.walk(by),
      setAll: (on) => {
        this.showsAll = on;
        this.update();
      },
      setChannels: (on) => {
        this.showsChannels = on;
        this.draw();
      },
    }, this.scene.say);
  }

  private showSections(work: Work, step: StepName): void {
    const wanted = this.showsAll ? work.steps.length : work.steps.indexOf(step) + 1, page = this.page();
    work.steps.forEach((one, i) => {
      if (i >= wanted) return this.sections.get(one)?.remove();
      const section = this.sections.get(one) ?? this.sectionOf(one, i + 1, work, page);
      this.sections.set(one, section);
      section.classList.toggle("now", one === step);
      if (one === step) section.setAttribute("aria-current", "step");
      else section.removeAttribute("aria-current");
      if (section.parentElement !== this.steps) this.steps.append(section); // always the first so many
    });
  }

  private page(): Page {
    const { say, theme } = this.scene;
    return { say, theme: theme(), open: this.showsChannels, queries: this.names("queries"), keys: this.names("keys") };
  }

  private sectionOf(step: StepName, number: number, work: Work, page: Page): HTMLElement {
    const { say } = this.scene;
    const formula = formulaOf(step, {
      scale: isRoot(work) ? "root" : "own", sink: work.numbers.sink !== null,
      blocked: say("numbers.may"), otherwise: say("numbers.otherwise"),
    });
    return h(
      "section", { "data-step": step },
      h("h3", {}, h("span", { class: "number" }, String(number)), say(`numbers.name.${step}`)),
      formula, h("p", { class: "about" }, aboutOf(step, work, page)), ...bodyOf(step, work, page),
    );
  }
}
