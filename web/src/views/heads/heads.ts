/** Heads as lines: queries left, keys right, each line the share that a query takes from a key, one colour per head. */
import type { View } from "../parts/view";
import { headControls } from "./controls";
import { figure } from "./figure";
import { HeadsView, type PaintedHeads } from "./headsView";
import { listen } from "./input";
import type { Line } from "./lines";

export const heads: View = (scene) => {
  const { el, choice, say, theme, signal } = scene;
  const view = new HeadsView(scene);
  const showControls = headControls(scene, view.frame);
  listen(view);
  choice.watch(() => {
    showControls(view.state());
    view.scroll.box.setAttribute("role", "application");
    view.scroll.box.setAttribute("aria-label", say("heads.stage"));
  }, signal);
  choice.watch(() => view.followQuery(), signal);
  choice.watch(() => { // reads what painting reads, and paints once per frame
    void [choice.picked.value, choice.drawn.value, choice.hover.value, theme(), say("heads.read")];
    view.repaint();
  }, signal);
  view.scroll.surface.onResize(() => view.resize());

  const painted = (): PaintedHeads | null => {
    view.paint();
    return view.painted;
  };
  const probe = {
    lines: (): Line[] => [...(view.painted?.drawing.lines ?? [])],
    visible: (): readonly [number, number] => view.visible(),
  };
  Object.assign(el, { regard: probe });
  return {
    svg: async () => {
      const now = painted();
      return now === null ? "" : figure(now.drawing, now.notes, say("head"));
    },
    table: async () => [["query", "query token", "key", "key token", "head", "weight"], ...tableOf(painted())],
    probe,
  };
};

const tableOf = (painted: PaintedHeads | null): (string | number)[][] =>
  painted === null ? []
    : painted.drawing.lines.map(({ query, key, head, weight }) =>
      [query, painted.state.queries.raw(query), key, painted.state.keys.raw(key), head, weight]);
