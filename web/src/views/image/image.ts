/** Attention over a picture: the patches that the chosen query looks at, laid over what the model saw. */
import { sentenceOf } from "../../language/errorText";
import { surface } from "../../paint/canvas";
import { shortened } from "../../paint/text";
import { tokensOf } from "../../trace/source";
import { chipsOf, elsewhere, legendOf } from "./around";
import { IMAGE } from "./style";
import { type Look, type Weighed, paintFrame, pictureFile, weigh } from "./paint";
import { type Frame, type Reading, framesIn, isWindowed, patchAt, readingOf } from "./patches";
import { fourDigits } from "../../paint/digits";
import { h } from "../parts/element";
import { dress } from "../parts/sheet";
import { colour } from "../parts/plainStyle";
import { sentenceFile } from "../parts/shape";
import type { Scene, Shown, View } from "../parts/view";

/** The picture with the weights of one query. */
export const image: View = (scene: Scene): Shown => {
  const { el, source, choice, say, signal } = scene;
  dress(el, IMAGE, signal);
  const bar = h("div", { class: "bar" }), chips = h("div", { class: "chips", role: "group" });
  const stage = h("div", { class: "stage", tabindex: 0, role: "application" });
  const status = h("p", { class: "status", "aria-live": "polite" });
  const note = h("p", { class: "pale note" }), legend = h("div", { class: "legend" });
  const read = h("p", { class: "pale" });
  const root = h(
    "div", { class: "rg rg-image" }, read, bar, chips, stage, h("div", { class: "foot" }, legend, status), note,
  );
  const message = h("p", { class: "message", role: "status" });
  el.replaceChildren(root);
  const { canvas, context, size, onResize } = surface(stage, signal);

  let reading: Reading | null = null, weighed: Weighed | null = null, all: Float32Array | null = null;
  let asked: { readonly name: string; readonly stop: AbortController } | null = null;
  let picture: HTMLImageElement | null = null, lost = false;
  let beside = false, strength = 0.6, cursor = -1, frames: readonly Frame[] = [];

  const place = (): number => {
    const { query, key } = choice.picked.peek();
    return (reading?.by === "row" ? query : key) ?? reading?.first ?? 0;
  };
  const nameOf = (which: "queries" | "keys", at: number): string => {
    const { layer, batch } = choice.picked.peek();
    return tokensOf(source.info, layer, batch, which)?.shown[at] ?? String(at);
  };
  const patchName = (patch: number): string =>
    say( // from 0 on, as its token is called everywhere else
      "image.patch", { row: Math.floor(patch / reading!.grid.columns), column: patch % reading!.grid.columns },
    );
  const chosenName = (): string => {
    const at = place(), patch = reading?.by === "row" ? reading.asks?.patchOf.get(at) : undefined;
    if (patch !== undefined) return patchName(patch);
    return shortened(nameOf(reading?.by === "row" ? "queries" : "keys", at), 24);
  };

  /** Why there is nothing to draw. */
  const absent = (): string =>
    say(isWindowed(source.info, choice.picked.peek().layer) ? "image.windows" : "image.none");

  const look = (): Look => {
    const { picked, hover, drawn } = choice, { grid, by, asks } = reading!;
    const far = by === "row" ? hover.peek().key : hover.peek().query;
    const other = by === "row" ? picked.peek().key : picked.peek().query;
    return {
      theme: scene.theme(), grid, image: picture, weighed, scale: drawn.peek().scale, strength,
      asked: by === "row" ? (asks?.patchOf.get(place()) ?? -1) : -1,
      pinned: other === null ? -1 : (grid.patchOf.get(other) ?? -1),
      over: cursor >= 0 ? cursor : far === null ? -1 : (grid.patchOf.get(far) ?? -1),
    };
  };
  const form = (): { width: number; height: number } => {
    const { picture: held } = source.info;
    if (held && held.width > 0 && held.height > 0) return held;
    return { width: reading!.grid.columns, height: reading!.grid.rows };
  };

  const draw = (): void => {
    if (!reading) return;
    const room = size();
    context.clearRect(0, 0, room.width, room.height);
    frames = framesIn(
      { width: room.width - 8, height: room.height - 8 }, form(), beside ? 2 : 1, 16,
    ).map((one) => ({ ...one, x: one.x + 4, y: one.y + 4 }));
    const now = look();
    frames.forEach((frame, i) => paintFrame(context, frame, now, beside && i === 0));
    tellPatch(now.over);
  };
  const tellPatch = (patch: number): void => {
    const chosen = say(reading!.by === "row" ? "image.query" : "image.key", { name: chosenName() });
    if (patch < 0 || !weighed) return void (status.textContent = chosen);
    const name = patchName(patch), weight = fourDigits(weighed.weights[patch]!);
    const words = weighed.allowed[patch] ? say("image.weight", { name, weight }) : say("image.blocked", { name });
    status.textContent = `${chosen} · ${words}`;
  };

  /** Everything around the picture: controls, chips, legend, what lies outside. */
  const surround = (): void => {
    const of = reading!, by = of.by;
    read.textContent = say(by === "column" ? "image.readKey" : of.asks ? "image.read" : "image.readWords");
    stage.setAttribute("aria-label", say("image.patches"));
    const tick = h("input", { type: "checkbox", "data-do": "beside" });
    tick.checked = beside;
    tick.addEventListener("change", () => { beside = tick.checked; draw(); });
    const slide = h("input", { type: "range", min: 0, max: 1, step: 0.05, value: strength, "data-do": "strength" });
    slide.addEventListener("input", () => { strength = Number(slide.value); draw(); });
    bar.replaceChildren(
      h("label", {}, tick, say("image.beside")), ...(picture ? [h("label", {}, say("image.strength"), slide)] : [])
    );
    chips.setAttribute("aria-label", say(by === "row" ? "image.tokens" : "image.keyTokens"));
    const focused = chips.contains((chips.getRootNode() as Document | ShadowRoot).activeElement);
    const [kind, which] = by === "row" ? (["query", "queries"] as const) : (["key", "keys"] as const);
    const pick = (token: number): void => choice.pick({ [kind]: token });
    const name = (token: number): string => nameOf(which, token);
    chips.replaceChildren(...chipsOf({ tokens: of.chips, at: place(), kind, name, pick, say }));
    if (focused) chips.querySelector<HTMLElement>("[aria-pressed=true]")?.focus();
    const outside = all && by === "row" ? elsewhere(all, of.grid, (key) => nameOf("keys", key), say) : "";
    const missing = lost ? say("image.lost") : source.info.picture ? "" : say("image.plain");
    note.textContent = [missing, outside].filter(Boolean).join(" ");
    const { scale } = choice.drawn.peek();
    legend.replaceChildren(...(weighed ? legendOf(weighed, picture !== null, scale, scene.theme().dark, say) : []));
  };

  const tell = (words: string, alert: boolean): void => {
    message.textContent = words;
    message.setAttribute("role", alert ? "alert" : "status");
    root.remove();
    el.replaceChildren(h("div", { class: "rg" }, message));
    colour(message.parentElement!, scene.theme());
  };
  const stand = (): void => { if (!root.isConnected || root.parentElement !== el) el.replaceChildren(root); };

  const ask = async (of: Reading, at: number, stop: AbortSignal): Promise<void> => {
    const { layer, batch, head } = choice.picked.peek(), which = { layer, batch, head };
    const found = of.by === "row" ? await source.row(which, at, stop) : await source.column(which, at, stop);
    if (stop.aborted) return;
    all = found.weights;
    weighed = weigh(of.grid, found.weights, found.allowed);
    surround();
    draw();
  };

  choice.watch(() => {
    const { layer, batch, head, query, key } = choice.picked.value;
    colour(root, scene.theme());
    say("image.read");
    reading = readingOf(source.info, layer, batch);
    const shape = source.info.layers[layer]?.shape;
    if (!reading || !shape || head >= shape[1] || batch >= shape[0]) {
      asked?.stop.abort();
      asked = null;
      reading = null;
      weighed = all = null;
      return tell(absent(), false);
    }
    stand();
    const limit = (reading.by === "row" ? shape[2] : shape[3]) - 1;
    const at = Math.min((reading.by === "row" ? query : key) ?? reading.first, limit);
    const name = [layer, batch, head, reading.by, at].join(" ");
    choice.drawn.value; // a change of scale draws again
    const patches = reading.grid.rows * reading.grid.columns;
    if (weighed?.weights.length !== patches) weighed = all = null;
    if (asked?.name === name || !weighed) { // else what is drawn stays until its successor is there
      surround();
      draw();
    }
    if (asked?.name === name) return;
    asked?.stop.abort();
    const stop = new AbortController();
    asked = { name, stop };
    if (!weighed) status.textContent = say("image.loading");
    ask(reading, at, stop.signal).catch((error: unknown) => {
      const why = sentenceOf(error);
      if (!stop.signal.aborted) tell(say("image.failed", { why }), true);
    });
  }, signal);
  choice.watch(() => { choice.hover.value; if (reading) draw(); }, signal);
  onResize(draw);

  const pointAt = (patch: number): void => {
    cursor = patch;
    const { layer, head } = choice.picked.peek();
    if (patch < 0 || !reading) return choice.point(null);
    const token = reading.grid.places[patch]!;
    choice.point(
      reading.by === "row" ? { layer, head, query: place(), key: token } : { layer, head, query: token, key: place() }
    );
    draw();
  };
  const take = (patch: number): void => {
    if (patch < 0 || !reading) return;
    const token = reading.grid.places[patch]!;
    if (reading.by === "column") choice.pick({ query: token, key: place() });
    else if (reading.asks) choice.pick({ query: reading.asks.places[patch] ?? token });
    else choice.pick({ query: place(), key: token });
  };
  const under = (event: MouseEvent): number => {
    const box = canvas.getBoundingClientRect();
    return reading ? patchAt(frames, reading.grid, event.clientX - box.left, event.clientY - box.top) : -1;
  };
  stage.addEventListener(
    "pointermove", (event) => { const patch = under(event); if (patch !== cursor) pointAt(patch); },
  );
  stage.addEventListener("pointerleave", () => pointAt(-1));
  stage.addEventListener("blur", () => pointAt(-1));
  stage.addEventListener("click", (event) => take(under(event)));
  stage.addEventListener("keydown", (event) => {
    if (!reading || event.altKey || event.ctrlKey || event.metaKey) return;
    const { rows, columns } = reading.grid;
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (by) {
      const now = cursor >= 0 ? cursor : Math.max(0, look().asked);
      const row = Math.max(0, Math.min(rows - 1, Math.floor(now / columns) + by[0]!));
      const column = Math.max(0, Math.min(columns - 1, (now % columns) + by[1]!));
      pointAt(row * columns + column);
    } else if (event.key === "Enter" || event.key === " ") take(cursor);
    else return;
    event.preventDefault();
    event.stopPropagation(); // the shell would move the selection
  });

  const address = source.info.picture?.address ?? "";
  if (/^(data:image\/|blob:)/.test(address)) {
    const loading = new Image();
    loading.onload = () => { if (!signal.aborted) { picture = loading; if (reading) { surround(); draw(); } } };
    loading.onerror = () => { lost = true; if (reading && !signal.aborted) { surround(); draw(); } };
    loading.src = address;
  } else lost = address !== ""; // a picture from elsewhere is never fetched
  signal.addEventListener("abort", () => asked?.stop.abort(), { once: true });

  const probe = {
    weight: (patch: number): number => weighed?.weights[patch] ?? NaN,
    query: (): number => place(),
    at: (patch: number): readonly [number, number] | null => {
      const frame = frames[frames.length - 1], grid = reading?.grid;
      if (!frame || !grid) return null;
      return [
        frame.x + ((patch % grid.columns) + 0.5) * (frame.width / grid.columns),
        frame.y + (Math.floor(patch / grid.columns) + 0.5) * (frame.height / grid.rows),
      ];
    },
  };
  Object.assign(el, { regard: probe });
  return {
    probe,
    svg: async () => {
      if (!reading) return sentenceFile(absent(), scene.theme());
      return pictureFile(
        { ...look(), over: -1 }, form(),
        say(reading.by === "row" ? "image.query" : "image.key", { name: chosenName() }),
        ["0", fourDigits(weighed?.top ?? 0)],
      );
    },
    table: async () => {
      const head = [say("image.patches"), say("weight")];
      return weighed ? [head, ...Array.from(weighed.weights, (weight, patch) => [patch, weight])] : [head];
    },
  };
};
