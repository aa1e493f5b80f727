/** The whole model: every head as a small map, layer by layer or in the order of a measure; a click opens one. */
import type { View } from "../parts/view";
import { figure } from "./figure";
import { listen } from "./input";
import type { At } from "./layout";
import { ModelView } from "./modelView";

export const model: View = (scene) => {
  const { el, choice, say, theme, signal } = scene;
  const view = new ModelView(scene);
  listen(view);
  measureInOrder(view);
  choice.watch(() => {
    view.updateControls();
    view.scroll.box.setAttribute("role", "application");
    view.scroll.box.setAttribute("aria-label", say("model.stage"));
  }, signal);
  choice.watch(() => {
    void [choice.picked.value, choice.drawn.value, choice.hover.value, theme(), say("model.read")];
    view.repaint();
  }, signal);
  view.scroll.surface.onResize(() => view.paint());

  const probe = probeOf(view);
  Object.assign(el, { regard: probe });
  return {
    svg: async () => {
      view.paint();
      return view.drawing === null ? "" : figure(view.drawing, view.pictures, view.notes());
    },
    table: () => tableOf(view),
    probe,
  };
};

/** Measures all layers when an order asks for it, and the first one for the names of the measures. */
function measureInOrder({ scene, measured, layers }: ModelView): void {
  const { choice, signal } = scene;
  let last: string | null = null;
  choice.watch(() => {
    const { sort } = choice.drawn.value, { batch } = choice.picked.value, before = last;
    last = `${sort} ${batch}`;
    if (last === before) return; // whoever stopped it meant it
    if (sort !== "") void measured.all(batch);
    else {
      measured.stop();
      if (layers.length > 0) measured.ask(0, batch).catch(() => undefined);
    }
  }, signal);
}

const probeOf = (view: ModelView) => ({
  order: (): At[] => (view.drawing?.grid.sorted ? [...view.drawing.grid.order] : [...view.all]),
  value: (layer: number, head: number, measure: string): number | null =>
    view.measured.value({ layer, head }, view.batch, measure),
  thumb: (layer: number, head: number): Float32Array => {
    const thumbs = view.pictures.of(layer), cells = (thumbs?.rows ?? 0) * (thumbs?.columns ?? 0);
    return thumbs?.max.slice(head * cells, (head + 1) * cells) ?? new Float32Array();
  },
});

/** One line per head with all its measures. */
async function tableOf({ measured, layers, batch, all }: ModelView): Promise<(string | number)[][]> {
  for (let layer = 0; layer < layers.length; layer++) await measured.ask(layer, batch);
  const names = measured.names(batch);
  return [
    ["layer", "name", "kind", "head", ...names],
    ...all.map((at) => [
      at.layer, layers[at.layer]!.name, layers[at.layer]!.kind, at.head,
      ...names.map((name) => measured.value(at, batch, name) ?? ""),
    ]),
  ];
}
