/** Pointer and keys over the heads of a model. */
import { hasModifier, pointerPlace, takeKey } from "../parts/dom";
import { type Tip, tip } from "../parts/tip";
import { type At, placeOf, stepHead, scrollToCell, headUnder } from "./layout";
import type { ModelView } from "./modelView";
import { card } from "./words";

const RESTS = 150; // milliseconds over a head before its layer is measured

/** Listens until the scene goes. */
export function listen(view: ModelView): void {
  const { scroll, scene, frame } = view, { choice, signal } = scene, { canvas } = scroll.surface;
  const hint = tip(frame.stage);
  let timer = 0;
  const leave = (): void => {
    window.clearTimeout(timer);
    choice.point(null);
    hint.hide();
  };
  signal.addEventListener("abort", () => window.clearTimeout(timer), { once: true });
  const headAt = (event: MouseEvent): At | null => {
    const { x, y } = pointerPlace(event, canvas);
    return view.drawing === null ? null : headUnder(view.drawing.grid, x, y, scroll.left(), scroll.top());
  };
  canvas.addEventListener("pointermove", (event) => {
    const at = headAt(event);
    canvas.style.cursor = at === null ? "default" : "pointer";
    if (at === null) return leave();
    if (!isHovered(view, at)) choice.point(at);
    const { x, y } = pointerPlace(event, canvas), show = showing(view, hint, x, y, at);
    show();
    window.clearTimeout(timer);
    if (view.measured.of(at.layer, view.batch) === undefined)
      timer = window.setTimeout(() => measureThen(view, at, show), RESTS);
  }, { signal });
  canvas.addEventListener("pointerleave", leave, { signal });
  canvas.addEventListener("click", (event) => {
    const at = headAt(event);
    if (at !== null) choice.pick({ ...at, view: "map" });
  }, { signal });
  scroll.box.addEventListener("keydown", (event) => {
    if (view.drawing === null || hasModifier(event)) return;
    const next = stepHead(view.drawing.grid, view.picked(), event.key);
    if (next === null && event.key !== "Enter") return;
    takeKey(event);
    leave(); // the keyboard has taken over from the pointer
    if (next === null) choice.pick({ ...view.picked(), view: "map" });
    else stepTo(view, next);
  }, { signal });
  scroll.onScroll(() => {
    leave();
    view.repaint();
  });
}

const isHovered = ({ scene }: ModelView, { layer, head }: At): boolean =>
  scene.choice.hover.value.layer === layer && scene.choice.hover.value.head === head;

/** Shows the card of a head, with the measures that are known when it is called. */
const showing = (view: ModelView, hint: Tip, x: number, y: number, at: At) => (): void =>
  hint.show(x, y, card(view.layers, at, view.measured.of(at.layer, view.batch), view.scene.say));

/** Measures the layer of a head, and shows its card again if the pointer is still there. */
function measureThen(view: ModelView, at: At, show: () => void): void {
  view.measured.ask(at.layer, view.batch).then(() => {
    if (isHovered(view, at)) show();
  }, () => undefined);
}

/** Picks a head by keyboard: it comes into sight and is read aloud. */
function stepTo(view: ModelView, next: At): void {
  const { scroll, scene, drawing } = view, { width, height } = scroll.surface.size();
  scene.choice.pick(next);
  const at = placeOf(drawing!.grid, next);
  const to = at === null ? null : scrollToCell(drawing!.grid, at.row, at.column, scroll.left(), scroll.top(), width, height);
  if (to !== null) scroll.to(to.left, to.top);
  const measures = view.measured.of(next.layer, view.batch) ?? { values: {}, notes: [] };
  view.frame.live.textContent = card(view.layers, next, measures, scene.say).join(", ");
}
