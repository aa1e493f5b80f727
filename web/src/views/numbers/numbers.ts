/** A proof on paper: every step from q and k to what the head gives, with the model's own numbers. */
import { messageFile } from "../parts/shape";
import { adoptStyle } from "../parts/sheet";
import type { Scene, ViewExports, View } from "../parts/view";
import { diagramFile, stationsOf } from "./diagram";
import { followChoice, listen } from "./input";
import { NumbersView } from "./numbersView";
import { PAPER } from "./paper";
import { type Value, valueIn } from "./value";
import type { StepName } from "./work";

/** Shows how one weight came about. Without a choice: the last query and its strongest key. */
export const numbers: View = (scene: Scene): ViewExports => {
  const { el, say, signal } = scene;
  adoptStyle(el, PAPER, signal);
  const view = new NumbersView(scene);
  el.replaceChildren(view.paper);
  followChoice(view);
  listen(view);
  const probe = probeOf(view);
  Object.assign(el, { regard: probe });
  return {
    probe,
    svg: async () => {
      const { work, steps } = view, theme = scene.theme();
      return work ? diagramFile(stationsOf(work, say), view.title(work), theme)
        : messageFile(steps.textContent ?? "", theme);
    },
    table: async () => tableOf(view),
  };
};

const probeOf = (view: NumbersView) => ({
  value: (...about: Value): number => valueIn(view.work, about),
  steps: (): readonly StepName[] => view.work?.steps ?? [],
  cell: (): readonly [number, number] | null => (view.work ? [view.work.query, view.work.key] : null),
  go: (step: StepName): void => view.goTo(step),
});

/** The row of the cell in hand, one line per key. */
function tableOf(view: NumbersView): (string | number)[][] {
  if (!view.work) return [];
  const { say } = view.scene, { weights, scores, allowed } = view.work.row, names = view.names("keys");
  return [
    [say("key"), say("numbers.keyText"), say("score"), say("weight"), say("numbers.allowed")],
    ...Array.from(weights, (weight, key) => [key, names(key), scores?.[key] ?? "", weight, allowed[key] ? 1 : 0]),
  ];
}
