/** Pointer, wheel and keys over a map panel, and the choice that it follows. */
import type { Pair } from "./keyboard";
import { stepSelection } from "./keyboard";
import { gestures } from "./gestures";
import type { PanelPainter } from "./panelDraw";
import type { PanelState } from "./panelState";
import { type Hover, hoverOver } from "./hover";
import type { Stage } from "./stage";
import { mapTip } from "./tip";
import { rowReader } from "./readAloud";

/** What the pointer is over, with a tooltip beside it. */
export function pointingAt(state: PanelState, stage: Stage): Hover {
  const { scene } = state;
  return hoverOver({
    choice: scene.choice, say: scene.say, theme: scene.theme, rows: state.showsWeights ? state.rows : null,
    tip: mapTip(stage.plot), head: () => state.head, hidden: state.around.hidden, hit: state.hitAt, pixel: state.pixelAt,
  });
}

/** Listens on the canvas until the scene goes. */
export function listenToGestures(state: PanelState, stage: Stage, pointing: Hover): void {
  const { lens, scene } = state, { canvas } = stage.paper;
  const readAloud = rowReader(scene.choice, state.rows, scene.say, stage.say);
  gestures(canvas, {
    zoom: lens.zoom,
    pan: (dx, dy) => {
      pointing.leave();
      lens.pan(dx, dy);
    },
    hover: (x, y) => {
      canvas.style.cursor = pointing.over(x, y) === null ? "" : "crosshair";
    },
    leave: pointing.leave,
    click: (x, y, shift) => pickAt(state, x, y, shift),
    key: (event) => {
      if (state.head === null || lens.seen() === null) return false;
      if (zoomByKey(state, event.key)) return true;
      const next = stepSelection(event.key, event.shiftKey, scene.choice.picked.peek(), state.head.shape, lens.seen()!);
      if (next === null) return false;
      scene.choice.pick(next);
      readAloud(state.head);
      return true;
    },
  }, scene.signal);
}

/** Picks what lies at a place, or lets go of it where it is picked already; with shift the whole row. */
function pickAt(state: PanelState, x: number, y: number, shift: boolean): void {
  const hit = state.hitAt(x, y), { choice } = state.scene, { query, key } = choice.picked.peek();
  if (hit === null) return;
  const next: Pair = { query: hit.query, key: shift && hit.query !== null ? null : hit.key };
  choice.pick(next.query === query && next.key === key ? { query: null, key: null } : next);
}

/** Zooms where the key means that; false where it does not. */
function zoomByKey(state: PanelState, key: string): boolean {
  if (key === "+" || key === "=") state.stepZoom(true);
  else if (key === "-") state.stepZoom(false);
  else if (key === "0") state.lens.showAll();
  else return false;
  return true;
}

/** Shows what is picked, and draws again when anything that it depends on changes. */
export function followChoice(state: PanelState, painter: PanelPainter): void {
  const { scene, zooming, lens, options } = state, { choice, say, signal } = scene;
  let before: Pair | null = null;
  choice.watch(() => {
    const { query, key, zoom } = choice.picked.value;
    void [choice.drawn.value, choice.hover.value, scene.theme(), say("map.keys"), zooming.live.value, options.top?.()];
    zooming.follow(zoom);
    const isOther = state.takeHead();
    if (isOther || lens.camera === null) painter.layOut();
    else lens.follow();
    const moved = before !== null && (before.query !== query || before.key !== key);
    if (moved) lens.show({ ...(query === null ? {} : { query }), ...(key === null ? {} : { key }) });
    before = { query, key };
    if (state.head !== null) state.around.look(state.head);
    state.frames.request();
  }, signal);
}
