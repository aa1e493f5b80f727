/** How a map grew: the same example at every kept step of a training, with the scores beside it. */
import { signal as live } from "@preact/signals";
import type { TrainingCard } from "../../hosts/server";
import { sentenceOf } from "../../language/errorText";
import type { Source } from "../../trace/source";
import { h } from "../parts/element";
import { dress } from "../parts/sheet";
import { colour } from "../parts/plainStyle";
import { sentenceFile } from "../parts/shape";
import { type Seen, player } from "./player";
import { TRAINING } from "./style";
import type { Scene, Shown, View } from "../parts/view";

const PAUSE = 2000; // milliseconds until it is asked what is new

/** The maps of a training, step by step. */
export const training: View = (scene: Scene): Shown => {
  const { el, choice, say, signal, server } = scene;
  dress(el, TRAINING, signal);
  const root = h("div", { class: "rg rg-training" });
  el.replaceChildren(root);
  const tell = (words: string, alert: boolean): void => root.replaceChildren(
    h("p", { class: "message", role: alert ? "alert" : "status" }, words)
  );
  const why = (error: unknown): string => say(
    "training.failed", { why: sentenceOf(error) },
  );
  let seen: Seen | null = null;
  const of = live<Source | null>(null);
  const probe = {
    step: (): number | null => seen?.step() ?? null,
    steps: (): readonly number[] => seen?.steps() ?? [],
    weight: (query: number, key: number): number | null => seen?.map()?.weight(query, key) ?? null,
    settled: async (): Promise<void> => { await seen?.settled(); },
  };
  Object.assign(el, { regard: probe });
  choice.watch(() => colour(root, scene.theme()), signal);

  if (!server) tell(say("training.served"), false);
  else {
    tell(say("training.loading"), false);
    let known = "", timer: ReturnType<typeof setTimeout> | undefined;
    signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
    const show = (cards: readonly TrainingCard[]): void => {
      const kept = cards.filter((card) => card.steps.length > 0 && card.examples > 0), now = JSON.stringify(kept);
      if (now === known) return;
      known = now;
      if (kept.length === 0) {
        seen = null;
        of.value = null;
        tell(say("training.none"), false);
      } else if (seen) seen.renew(kept);
      else seen = player(scene, server, kept, root, (source) => { of.value = source; });
    };
    /** Ask again and again: a run may begin, or go on, while it is looked at. */
    const ask = (): void => {
      const later = (): void => { if (!signal.aborted) timer = setTimeout(ask, PAUSE); };
      if (document.hidden) return later();
      server.trainings().then(
        (cards) => { if (!signal.aborted) show(cards); },
        (error: unknown) => { if (!signal.aborted && !seen) tell(why(error), true); },
      ).finally(later);
    };
    ask();
  }
  return {
    probe, of,
    svg: async () => (
      seen ? seen.svg() : sentenceFile(say(server ? "training.none" : "training.served"), scene.theme())
    ),
    table: async () => seen?.table() ?? [],
  };
};
