/** A map as a panel: the map view is one of them, and comparing puts several side by side with a zoom in common. */
import type { Scene } from "../parts/view";
import { PanelPainter } from "./panelDraw";
import { type MapExports, panelProbe, panelSvg, panelTable } from "./panelExport";
import { followChoice, listenToGestures, pointingAt } from "./panelInput";
import { type PanelOptions, PanelState } from "./panelState";
import { stageIn } from "./stage";

export type { MapProbe, MapExports } from "./panelExport";
export type { PanelOptions } from "./panelState";

/** A zoomable map in an element. Never throws; what goes wrong stands in it as a sentence. */
export function mapPanel(scene: Scene, options: PanelOptions = {}): MapExports {
  const el = options.el ?? scene.el;
  const state = new PanelState(scene, options, () => painter.draw());
  const stage = stageIn(el, options.title ?? "", {
    nearer: () => state.stepZoom(true), farther: () => state.stepZoom(false), whole: () => state.lens.showAll(),
    changed: state.frames.request,
  }, scene.signal);
  const pointing = pointingAt(state, stage);
  const painter = new PanelPainter(state, stage, pointing.again);
  listenToGestures(state, stage, pointing);
  followChoice(state, painter);
  stage.paper.onResize(() => {
    painter.layOut();
    painter.draw(); // at once: a canvas that changed its size is empty
  });
  const probe = panelProbe(state, stage, painter, el);
  Object.assign(el, { regard: probe });
  return { probe, svg: () => panelSvg(state, stage, painter), table: () => panelTable(state) };
}
