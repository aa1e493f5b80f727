/** Clicks on numbers, the pointer over them, arrows between the steps, and the choice that the view follows. */
import { errorText } from "../../language/errorText";
import { hasModifier, takeKey } from "../parts/dom";
import { setColours } from "../parts/plainStyle";
import type { NumbersView } from "./numbersView";

/** The cell of the map that a number belongs to, as far as it says one; null where it says none. */
function cellOf(event: Event, steps: HTMLElement): { query?: number; key?: number } | null {
  const cell = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-key], [data-query]") : null;
  if (!cell || !steps.contains(cell)) return null;
  const { query, key } = cell.dataset;
  return {
    ...(query === undefined ? {} : { query: Number(query) }), ...(key === undefined ? {} : { key: Number(key) }),
  };
}

/** Listens on the paper. */
export function listen(view: NumbersView): void {
  const { steps, paper, scene } = view, { choice, signal } = scene;
  steps.addEventListener("click", (event) => {
    const cell = cellOf(event, steps), { work } = view;
    if (!cell || !work || getSelection()?.isCollapsed === false) return; // somebody marks text to copy it
    choice.pick({ query: work.query, key: work.key, ...cell });
  });
  steps.addEventListener("pointerover", (event) => {
    const cell = cellOf(event, steps), { layer, head } = view.at();
    choice.point(cell && { layer, head, ...cell });
  });
  steps.addEventListener("pointerleave", () => choice.point(null));
  paper.addEventListener("keydown", (event) => {
    const target = event.target as Element, isOurs = target.closest(".walk") || target.closest(".station");
    if (hasModifier(event) || !isOurs || (event.key !== "ArrowLeft" && event.key !== "ArrowRight")) return;
    takeKey(event);
    view.walk(event.key === "ArrowLeft" ? -1 : 1);
  });
  const observer = new ResizeObserver(() => view.resize());
  observer.observe(paper);
  signal.addEventListener("abort", () => observer.disconnect(), { once: true });
}

/** Shows the cell that is picked: the last query and its strongest key where none is. */
export function followChoice(view: NumbersView): void {
  const { scene, paper } = view, { source, choice, say, signal } = scene;
  let request: { readonly name: string; readonly stop: AbortController } | null = null;
  signal.addEventListener("abort", () => request?.stop.abort(), { once: true });
  choice.watch(() => {
    const { layer, batch, head, query, key } = choice.picked.value;
    setColours(paper, scene.theme());
    say("numbers.read"); // so that a change of language draws again
    const shape = source.info.layers[layer]?.shape;
    const exists = shape && head < shape[1] && batch < shape[0] && shape[2] > 0 && shape[3] > 0;
    if (!exists) {
      request?.stop.abort();
      request = view.work = null;
      return view.showMessage(say("numbers.empty"), false);
    }
    const row = Math.min(query ?? shape[2] - 1, shape[2] - 1), column = key === null ? null : Math.min(key, shape[3] - 1);
    const name = [layer, batch, head, row, column].join(" ");
    if (request?.name === name) return view.draw();
    request?.stop.abort();
    request = { name, stop: new AbortController() };
    load(view, row, column, request.stop.signal);
  }, signal);
}

/** Asks for a cell and says so; what goes wrong is told in its place. */
function load(view: NumbersView, query: number, key: number | null, stop: AbortSignal): void {
  const { paper, scene } = view, { say } = scene;
  if (!view.work) view.showMessage(say("numbers.loading"), false);
  paper.setAttribute("aria-busy", "true");
  view.load(query, key, stop)
    .catch((error: unknown) => {
      if (stop.aborted) return;
      view.work = null;
      view.showMessage(say("numbers.failed", { why: errorText(error) }), true);
    })
    .finally(() => {
      if (!stop.aborted) paper.removeAttribute("aria-busy");
    });
}
