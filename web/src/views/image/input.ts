/** Pointer and keys over the patches, the choice that the view follows, and the picture itself. */
import { errorText } from "../../language/errorText";
import { hasModifier, pointerPlace, takeKey } from "../parts/dom";
import { setColours } from "../parts/plainStyle";
import type { ImageView } from "./imageView";
import { type Reading, patchAt, readingOf } from "./patches";

/** Listens on the picture. */
export function listen(view: ImageView): void {
  const { stage } = view, { canvas } = view.surface;
  const under = (event: MouseEvent): number => {
    const { x, y } = pointerPlace(event, canvas);
    return view.reading ? patchAt(view.frames, view.reading.grid, x, y) : -1;
  };
  stage.addEventListener("pointermove", (event) => {
    const patch = under(event);
    if (patch !== view.cursor) pointAt(view, patch);
  });
  stage.addEventListener("pointerleave", () => pointAt(view, -1));
  stage.addEventListener("blur", () => pointAt(view, -1));
  stage.addEventListener("click", (event) => pick(view, under(event)));
  stage.addEventListener("keydown", (event) => {
    if (!view.reading || hasModifier(event)) return;
    const next = stepPatch(view, view.reading, event.key);
    if (next !== null) pointAt(view, next);
    else if (event.key === "Enter" || event.key === " ") pick(view, view.cursor);
    else return;
    takeKey(event);
  });
}

/** Tells all views which patch the pointer is over; −1: none. */
function pointAt(view: ImageView, patch: number): void {
  const { reading, scene } = view, { choice } = scene, { layer, head } = choice.picked.peek();
  view.cursor = patch;
  if (patch < 0 || !reading) return choice.point(null);
  const token = reading.grid.places[patch]!, place = view.place();
  const [query, key] = reading.by === "row" ? [place, token] : [token, place];
  choice.point({ layer, head, query, key });
  view.draw();
}

function pick(view: ImageView, patch: number): void {
  const { reading, scene } = view, { choice } = scene;
  if (patch < 0 || !reading) return;
  const token = reading.grid.places[patch]!;
  if (reading.by === "column") choice.pick({ query: token, key: view.place() });
  else if (reading.asks) choice.pick({ query: reading.asks.places[patch] ?? token });
  else choice.pick({ query: view.place(), key: token });
}

/** The patch after an arrow key; null for other keys. */
function stepPatch(view: ImageView, { grid }: Reading, key: string): number | null {
  const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[key];
  if (by === undefined) return null;
  const now = view.cursor >= 0 ? view.cursor : Math.max(0, view.look().asked);
  const row = Math.max(0, Math.min(grid.rows - 1, Math.floor(now / grid.columns) + by[0]!));
  const column = Math.max(0, Math.min(grid.columns - 1, (now % grid.columns) + by[1]!));
  return row * grid.columns + column;
}

/** Shows the token that is picked, or why its layer has nothing to show. */
export function followChoice(view: ImageView): void {
  const { scene, root } = view, { source, choice, say, signal } = scene;
  let request: { readonly name: string; readonly stop: AbortController } | null = null;
  signal.addEventListener("abort", () => request?.stop.abort(), { once: true });
  choice.watch(() => {
    const { layer, batch, head, query, key } = choice.picked.value;
    setColours(root, scene.theme());
    say("image.read");
    const shape = source.info.layers[layer]?.shape, reading = readingOf(source.info, layer, batch);
    if (!reading || !shape || head >= shape[1] || batch >= shape[0]) {
      request?.stop.abort();
      request = view.reading = null;
      view.forgetWeights();
      return view.showMessage(view.absence(), false);
    }
    view.reading = reading;
    view.showPicture();
    const limit = (reading.by === "row" ? shape[2] : shape[3]) - 1;
    const at = Math.min((reading.by === "row" ? query : key) ?? reading.first, limit);
    const { residual } = choice.drawn.value; // a change of scale draws again
    const name = [layer, batch, head, reading.by, at, view.rollsOut() && `rollout ${residual}`].join(" ");
    if (view.weighed?.weights.length !== reading.grid.rows * reading.grid.columns) view.forgetWeights();
    if (request?.name === name || !view.weighed) view.update(); // else what is drawn stays until its successor is there
    if (request?.name === name) return;
    request?.stop.abort();
    request = { name, stop: new AbortController() };
    load(view, reading, at, request.stop.signal);
  }, signal);
  choice.watch(() => {
    choice.hover.value;
    view.draw();
  }, signal);
}

function load(view: ImageView, reading: Reading, at: number, stop: AbortSignal): void {
  if (!view.weighed) view.showLoading();
  view.load(reading, at, stop).catch((error: unknown) => {
    if (!stop.aborted) view.showMessage(view.scene.say("image.failed", { why: errorText(error) }), true);
  });
}

/** The picture that the model saw. One from elsewhere is never fetched. */
export function loadPicture(view: ImageView): void {
  const { source, signal } = view.scene, address = source.info.picture?.address ?? "";
  if (!/^(data:image\/|blob:)/.test(address)) {
    view.isPictureLost = address !== "";
    return;
  }
  const image = new Image();
  const update = (): void => {
    if (view.reading && !signal.aborted) view.update();
  };
  image.onload = () => {
    if (!signal.aborted) view.picture = image;
    update();
  };
  image.onerror = () => {
    view.isPictureLost = true;
    update();
  };
  image.src = address;
}
