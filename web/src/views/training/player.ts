/** Plays a training: the map at a step, the controls above it and the scores beside it. */
import { errorText } from "../../language/errorText";
import type { Server } from "../../hosts/server";
import type { TrainingCard } from "../../trace/messages";
import type { Source } from "../../trace/source";
import { h } from "../parts/element";
import type { Scene } from "../parts/view";
import { type PlayerControls, playerControls } from "./controls";
import { stepSources } from "./stepSources";
import { type ShownRuns, scoreCharts, scoreTable, scoresBeside } from "./scores";
import type { MapProbe } from "../map/panel";
import { StepMap } from "./stepMap";

const BEAT = 800; // milliseconds that a step stands while it plays
const TICK = 1000; // milliseconds until the time that is left is told again

/** Whether there is anything to look at beside the curves. */
const hasMaps = (card: TrainingCard): boolean => card.steps.length > 0 && card.examples > 0;

export class Player {
  private card: TrainingCard;
  private other: TrainingCard | null = null; // what it is compared with
  private at: number; // which step of the card; -1 where it has no maps
  private example = 0;
  private isPlaying = false;
  private request = 0;
  private arriving: Promise<void> = Promise.resolve();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly open: ReturnType<typeof stepSources>;
  private readonly map: StepMap;
  private readonly controls: PlayerControls;
  private readonly scores = h("div", { class: "scores" });

  /** Fills `root`; `tell` hears whose map is shown. */
  constructor(
    private readonly scene: Scene, server: Server, private cards: readonly TrainingCard[], root: HTMLElement,
    tell: (source: Source | null) => void,
  ) {
    this.card = cards.find(hasMaps) ?? cards[0]!;
    this.at = this.card.steps.length - 1;
    this.open = stepSources(server);
    this.map = new StepMap(scene, tell);
    this.controls = playerControls({
      pickRun: (run) => this.pickRun(run),
      pickOther: (run) => {
        this.other = this.cards[run] ?? null;
        this.showScores();
      },
      pickExample: (example) => {
        this.example = example;
        this.show();
      },
      goTo: (at) => this.jumpTo(at),
      stepBy: (by) => this.jumpTo(this.at + by),
      togglePlay: () => (this.isPlaying ? this.pause() : this.play()),
    }, scene.say);
    root.replaceChildren(this.controls.element, h("div", { class: "body" }, this.map.element, this.scores));
    const ticks = setInterval(() => this.controls.showProgress(this.card), TICK);
    scene.signal.addEventListener("abort", () => {
      clearTimeout(this.timer);
      clearInterval(ticks);
    }, { once: true });
    this.followChoice();
  }

  private pickRun(run: number): void {
    this.card = this.cards[run]!;
    if (this.other === this.card) this.other = null;
    this.at = this.card.steps.length - 1;
    this.example = 0;
    this.pause();
    this.show();
  }

  private goTo(at: number): void {
    this.at = Math.max(0, Math.min(this.card.steps.length - 1, at));
    this.show();
  }

  /** By hand: whatever plays stops. */
  private jumpTo(at: number): void {
    this.pause();
    this.goTo(at);
  }

  private pause(): void {
    this.isPlaying = false;
    clearTimeout(this.timer);
    this.showControls();
  }

  private play(): void {
    this.isPlaying = true;
    if (this.at >= this.card.steps.length - 1) this.at = -1; // from the beginning
    this.beat();
  }

  /** The next step, once this one is drawn. */
  private beat(): void {
    if (!this.isPlaying || this.scene.signal.aborted) return;
    if (this.at >= this.card.steps.length - 1) return this.pause();
    this.goTo(this.at + 1);
    void this.arriving.then(() => {
      this.timer = setTimeout(() => this.beat(), BEAT);
    });
  }

  private showControls(): void {
    const { cards, card, other, at, example, isPlaying } = this;
    this.controls.show({ cards, card, other, at, example, isPlaying });
  }

  private showScores(): void {
    const { theme, say } = this.scene;
    this.scores.replaceChildren(...scoreCharts(this.shown, theme(), say, (at) => this.jumpTo(at)));
  }

  private get shown(): ShownRuns {
    return { card: this.card, other: this.other, at: this.at };
  }

  private show(): void {
    this.showControls();
    this.showScores();
    const { card, at, example, scene } = this, mine = ++this.request;
    if (!hasMaps(card)) return this.map.showMessage(scene.say("training.mapless"), "status");
    const isCurrent = (): boolean => mine === this.request && !scene.signal.aborted;
    const title = scene.say("training.at", { step: card.steps[at]! });
    this.arriving = this.open(card.id, card.steps[at]!, example).then(
      (source) => (isCurrent() ? this.map.show(source, title) : undefined),
      (error: unknown) => {
        if (!isCurrent()) return;
        this.pause();
        this.map.showMessage(scene.say("training.failed", { why: errorText(error) }), "alert");
      },
    );
    const next = card.steps[at + 1];
    if (this.isPlaying && next !== undefined) // ready when its turn comes
      this.open(card.id, next, example).catch(() => undefined);
  }

  /** A run that goes on: who looks at its last step is shown the next one, who looks at another stays there. */
  renew(cards: readonly TrainingCard[]): void {
    const same = cards.find((one) => one.id === this.card.id);
    const wasLast = this.at === this.card.steps.length - 1, step = this.card.steps[this.at];
    this.cards = cards;
    this.card = same ?? cards.find(hasMaps) ?? cards[0]!;
    this.other = cards.find((one) => one.id === this.other?.id && one !== this.card) ?? null;
    const at = same ? same.steps.indexOf(step ?? -1) : -1, last = this.card.steps.length - 1;
    const moves = !same || (at < 0 && last >= 0) || (wasLast && !this.isPlaying && at < last);
    this.at = moves ? last : at;
    this.example = Math.max(0, Math.min(this.example, this.card.examples - 1));
    if (moves) return this.show();
    this.showControls();
    this.showScores();
  }

  private followChoice(): void {
    const { choice, theme, say, signal } = this.scene;
    let before = "";
    choice.watch(() => {
      const { layer, head } = choice.picked.value;
      const now = [layer, head, theme().dark, say("training.read")].join(" ");
      if (now === before) return;
      const isFresh = before === "" || this.map.isEmpty; // a panel follows the choice by itself
      before = now;
      if (isFresh) return this.show();
      this.showControls();
      this.showScores();
    }, signal);
  }

  get step(): number | null {
    return this.card.steps[this.at] ?? null;
  }

  get steps(): readonly number[] {
    return this.card.steps;
  }

  get mapProbe(): MapProbe | null {
    return this.map.probe;
  }

  async settled(): Promise<void> {
    await this.arriving;
    await this.map.probe?.settled();
  }

  async svg(): Promise<string> {
    return scoresBeside(await this.map.svg(), this.shown, this.scene.theme(), this.scene.say);
  }

  table(): (string | number)[][] {
    return scoreTable(this.shown, this.scene.say);
  }
}
