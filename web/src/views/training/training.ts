/** How a map grew: the same example at every kept step of a training, with its curves beside it, and another's. */
import { signal as live } from "@preact/signals";
import type { Server } from "../../hosts/server";
import type { TrainingCard } from "../../trace/messages";
import { errorText } from "../../language/errorText";
import type { Source } from "../../trace/source";
import { h } from "../parts/element";
import { setColours } from "../parts/plainStyle";
import { messageFile } from "../parts/shape";
import { adoptStyle } from "../parts/sheet";
import type { Scene, ViewExports, View } from "../parts/view";
import { Player } from "./player";
import { TRAINING } from "./style";

const PAUSE = 2000; // milliseconds until it is asked what is new

/** The maps of a training, step by step. */
export const training: View = (scene: Scene): ViewExports => {
  const { el, choice, say, signal, server } = scene;
  adoptStyle(el, TRAINING, signal);
  const view = new TrainingView(scene);
  el.replaceChildren(view.root);
  const probe = {
    step: (): number | null => view.player?.step ?? null,
    steps: (): readonly number[] => view.player?.steps ?? [],
    weight: (query: number, key: number): number | null => view.player?.mapProbe?.weight(query, key) ?? null,
    settled: async (): Promise<void> => { await view.player?.settled(); },
  };
  Object.assign(el, { regard: probe });
  choice.watch(() => setColours(view.root, scene.theme()), signal);
  if (!server) view.showMessage(say("training.served"), false);
  else view.pollTrainings(server);
  return {
    probe, of: view.source,
    svg: async () =>
      view.player?.svg() ?? messageFile(say(server ? "training.none" : "training.served"), scene.theme()),
    table: async () => view.player?.table() ?? [],
  };
};

class TrainingView {
  readonly root = h("div", { class: "rg rg-training" });
  readonly source = live<Source | null>(null); // whose map is shown
  player: Player | null = null; // null while there is no training to show
  private known = "";

  constructor(private readonly scene: Scene) {}

  showMessage(words: string, isAlert: boolean): void {
    this.root.replaceChildren(h("p", { class: "message", role: isAlert ? "alert" : "status" }, words));
  }

  /** Asks again and again: a run may begin, or go on, while it is looked at. */
  pollTrainings(server: Server): void {
    const { say, signal } = this.scene;
    let timer: ReturnType<typeof setTimeout> | undefined;
    signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
    const ask = (): void => {
      const later = (): void => { if (!signal.aborted) timer = setTimeout(ask, PAUSE); };
      if (document.hidden) return later();
      server.trainings().then(
        (cards) => { if (!signal.aborted) this.show(cards, server); },
        (error: unknown) => {
          if (!signal.aborted && !this.player)
            this.showMessage(say("training.failed", { why: errorText(error) }), true);
        },
      ).finally(later);
    };
    this.showMessage(say("training.loading"), false);
    ask();
  }

  private show(all: readonly TrainingCard[], server: Server): void {
    const cards = all.filter((card) => (card.steps.length > 0 && card.examples > 0) || card.losses.length > 0);
    const now = JSON.stringify(cards);
    if (now === this.known) return;
    this.known = now;
    if (cards.length === 0) {
      this.player = null;
      this.source.value = null;
      this.showMessage(this.scene.say("training.none"), false);
    } else if (this.player) this.player.renew(cards);
    else this.player = new Player(this.scene, server, cards, this.root, (source) => { this.source.value = source; });
  }
}
