/** Pointer, wheel and keys over the flow view. */
import { hasModifier, pointerPlace, takeKey } from "../parts/dom";
import { tip } from "../parts/tip";
import { lineOf, topLayer } from "./requests";
import type { FlowView } from "./flowView";
import { type FlowHit, under } from "./layout";
import { type FlowDrawing, barsOf } from "./paint";

/** Listens until the scene goes. */
export function listen(view: FlowView): void {
  const { scroll, scene, frame } = view, { choice, signal } = scene, { canvas } = scroll.surface;
  const card = tip(frame.stage);
  const leave = (): void => {
    view.hovered = null;
    card.hide();
    choice.point(null);
    view.repaint();
  };
  const trace = (query: number): void =>
    choice.pick({ query, layer: view.traced()?.raw.layer ?? topLayer(scene.source.info) });

  canvas.addEventListener("pointermove", (event) => {
    const { drawing } = view;
    if (drawing === null) return;
    const { x, y } = pointerPlace(event, canvas);
    const over = view.hovered = under(drawing.plan, x, y, scroll.left(), scroll.top(), scroll.surface.size().width);
    canvas.style.cursor = over?.part.name === "target" ? "pointer" : "default";
    if (over === null) return leave();
    pointAt(view, drawing, over);
    card.show(x, y, cardLines(view, drawing, over));
    view.repaint();
  }, { signal });
  canvas.addEventListener("pointerleave", leave, { signal });
  canvas.addEventListener("click", () => {
    const { hovered } = view;
    if (hovered?.part.name === "target") trace(hovered.token);
    else if (hovered !== null && view.drawing?.rawPart === "source") choice.pick({ key: hovered.token });
  }, { signal });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    view.zoom(event.deltaY < 0 ? 1.25 : 0.8);
  }, { signal, passive: false });
  scroll.box.addEventListener("keydown", (event) => {
    const at = view.traced();
    if (view.drawing === null || at === null || hasModifier(event)) return;
    const last = view.drawing.flow.n - 1;
    const next = { ArrowLeft: at.query - 1, ArrowRight: at.query + 1, Home: 0, End: last }[event.key];
    if (next === undefined && event.key !== "+" && event.key !== "-") return;
    takeKey(event);
    leave(); // the keyboard has taken over from the pointer
    if (next === undefined) view.zoom(event.key === "+" ? 2 : 0.5);
    else trace(Math.max(0, Math.min(last, next)));
  }, { signal });
  scroll.onScroll(leave);
}

/** Tells the other views what the pointer is over: a weight of the raw attention, or only the token. */
function pointAt(view: FlowView, { rawPart, query }: FlowDrawing, { part, token }: FlowHit): void {
  const raw = view.traced()?.raw, { choice } = view.scene;
  if (raw !== undefined && part.name === rawPart) choice.point({ layer: raw.layer, head: raw.head, query, key: token });
  else choice.point({ query });
}

/** The lines of the card beside the pointer. */
function cardLines({ scene }: FlowView, drawing: FlowDrawing, { part, token, row }: FlowHit): string[] {
  const { say } = scene, line = typeof row === "number" ? row : 0, weights = barsOf(drawing, "raw", part.name);
  const share = lineOf(drawing.flow, part.name, line)[token]!, isBlocked = drawing.raw?.allowed[token] === 0;
  const weight = weights === null ? null : isBlocked ? say("flow.blocked") : weights[token]!.toPrecision(4);
  return [
    `${drawing.names[part.name].whole(token)}  ·  ${drawing.words[part.name]} ${token}`,
    `${drawing.labels[line] ?? ""}: ${share.toPrecision(4)}`,
    ...(weight === null ? [] : [`${drawing.words.raw}: ${weight}`]),
    ...(part.name === "target" ? [say("flow.click")] : []),
  ];
}
