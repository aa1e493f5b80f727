/** Where a token is fed from, layer by layer (rollout), with its raw attention below: the two differ. */
import type { View } from "../parts/view";
import { lineOf } from "./requests";
import { figure } from "./figure";
import { FlowView } from "./flowView";
import { listen } from "./input";
import { visibleColumns } from "./layout";
import type { FlowDrawing } from "./paint";

export const flow: View = (scene) => {
  const { el, choice, say, theme, signal } = scene;
  const view = new FlowView(scene);
  listen(view);
  choice.watch(() => {
    view.controls.update();
    view.scroll.box.setAttribute("role", "application");
    view.scroll.box.setAttribute("aria-label", say("flow.stage"));
  }, signal);
  choice.watch(() => {
    void [choice.picked.value, choice.drawn.value, theme(), say("flow.read")];
    view.repaint();
  }, signal);
  view.scroll.surface.onResize(() => view.paint());

  const painted = (): FlowDrawing | null => {
    view.paint();
    return view.drawing;
  };
  const probe = probeOf(view);
  Object.assign(el, { regard: probe });
  return {
    svg: async () => {
      const drawing = painted();
      const { token, sampled } = view.controls, notes = [token, sampled].map((one) => one.textContent ?? "").filter(Boolean);
      return drawing === null ? "" : figure(drawing, [...notes, say("flow.colors"), say("flow.caution")]);
    },
    table: async () => {
      const drawing = painted(), error = drawing?.flow.error ?? 0;
      const share = error > 0 ? `share (sampled, ± ${error.toFixed(4)})` : "share";
      return [["line", "input of", "part", "place", "token", share], ...tableOf(drawing)];
    },
    probe,
  };
};

const probeOf = (view: FlowView) => ({
  share: (at: number, column: number, part: "source" | "target" = "target"): number =>
    (view.drawing === null ? undefined : lineOf(view.drawing.flow, part, at)[column]) ?? NaN,
  raw: (column: number): number => view.drawing?.raw?.weights[column] ?? NaN,
  visible: (): readonly [number, number] => {
    if (view.drawing === null) return [0, -1];
    const { plan, left, width } = view.drawing;
    return visibleColumns(plan, plan.parts[plan.parts.length - 1]!, left, width);
  },
});

/** One line per layer and token. */
const tableOf = (drawing: FlowDrawing | null): (string | number)[][] =>
  drawing === null ? []
    : Array.from({ length: drawing.flow.lines }, (_, at) => drawing.plan.parts.flatMap((part) =>
      Array.from(lineOf(drawing.flow, part.name, at), (value, column) =>
        [at, drawing.flow.layers[at] ?? "", part.name, column, drawing.names[part.name].raw(column), value]))).flat();
