/** How a map grew: the same example at every kept step of a training, with the scores beside it. */
import { signal as live } from "@preact/signals";
import { sentenceOf } from "../shell/failing";
import type { Source } from "../trace/source";
import { h } from "./parts/element";
import { dress } from "./parts/sheet";
import { colour } from "./numbers/paper";
import { sentenceFile } from "./numbers/shape";
import { type Seen, player } from "./training/player";
import { TRAINING } from "./training/style";
import type { Scene, Shown, View } from "./view";

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
    server.trainings().then(
      (cards) => {
        if (signal.aborted) return;
        const kept = cards.filter((card) => card.steps.length > 0 && card.examples > 0);
        if (kept.length === 0) return tell(say("training.none"), false);
        seen = player(scene, server, kept, root, (source) => { of.value = source; });
      },
      (error: unknown) => { if (!signal.aborted) tell(why(error), true); },
    );
  }
  return {
    probe, of,
    svg: async () => (
      seen ? seen.svg() : sentenceFile(say(server ? "training.none" : "training.served"), scene.theme())
    ),
    table: async () => seen?.table() ?? [],
  };
};
