/** The whole model: every head as a small map, layer by layer or in the order of a measure; a click opens one. */
import { sentenceOf } from "../../language/errorText";
import { button, fill, frame, perFrame, select } from "../parts/dom";
import { made } from "../parts/element";
import { legend } from "../parts/legend";
import { scroller } from "../parts/scroller";
import { tip } from "../parts/tip";
import { figure } from "./figure";
import { type At, extent, type Grid, gridOf, placeOf, sizeOf, stepped, towards, under } from "./layout";
import { Measured, sorted } from "./measured";
import { cellsSeen, type Drawing, FONT, paintModel } from "./paint";
import { Pictures } from "./pictures";
import { Rows } from "./rows";
import { card, labelsOf, measureName, rule, valueOf } from "./words";
import type { View } from "../parts/view";

const RESTS = 150; // milliseconds over a head before its layer is measured

export const model: View = ({ el, source, choice, say, theme, signal }) => {
  const { layers } = source.info;
  const heads = layers.map((layer) => layer.shape[1]), total = heads.reduce((a, b) => a + b, 0);
  const all: readonly At[] =
    heads.flatMap((count, layer) => Array.from({ length: count }, (_, head) => ({ layer, head })));
  const { bar, stage, foot, live, alert, dress } = frame(el, signal);
  const room = scroller(stage, signal);
  const hint = tip(stage);
  const repaint = perFrame(() => paint(), signal);
  const pictures = new Pictures(source, repaint, signal), rows = new Rows(layers, pictures);
  const measured = new Measured(source, () => {
    controls();
    repaint();
  }, signal);
  const batch = (): number => choice.picked.value.batch;
  const picked = (): At => {
    const layer = Math.max(0, Math.min(choice.picked.value.layer, layers.length - 1));
    return { layer, head: Math.max(0, Math.min(choice.picked.value.head, (heads[layer] ?? 1) - 1)) };
  };

  const sortWords = made("span"), order = select((sort) => choice.draw({ sort }), signal);
  const way = button(() => choice.draw({ falling: !choice.drawn.value.falling }), signal);
  const progress = made("span", { color: "var(--view-pale)", fontVariantNumeric: "tabular-nums" });
  progress.setAttribute("role", "status");
  const stop = button(() => {
    if (measured.running) measured.stop();
    else void measured.all(batch());
    controls();
  }, signal);
  const sorting = made("label", { display: "inline-flex", alignItems: "center", gap: "6px" }, sortWords, order);
  bar.append(sorting, way, progress, stop);
  const scale = legend(), words = made("span"), ruleWords = made("span"), belowWords = made("span");
  foot.append(words, scale.el, ruleWords, belowWords);

  const controls = (): void => {
    const { sort, falling } = choice.drawn.value, names = measured.names(batch()), count = measured.count(batch());
    const known = sort === "" || names.includes(sort) ? names : [sort, ...names];
    sortWords.textContent = say("model.sort");
    fill(order, [["", say("model.own")], ...known.map((name) => [name, measureName(name, say)] as const)], sort);
    way.textContent = say(falling ? "model.falling" : "model.rising");
    way.title = say("shell.turn");
    way.hidden = sort === "";
    const unfinished = sort !== "" && count < layers.length;
    progress.textContent = measured.error !== null ? sentenceOf(measured.error)
      : unfinished ? say("model.progress", { count, all: layers.length }) : "";
    stop.textContent = say(measured.running ? "model.stop" : "model.continue");
    stop.hidden = !unfinished;
    room.box.setAttribute("role", "application");
    room.box.setAttribute("aria-label", say("model.stage"));
  };

  let now: Drawing | null = null;
  const paint = (): void => {
    const { context } = room.surface, colors = theme(), { sort, falling, scale: how } = choice.drawn.value;
    dress(colors);
    if (total === 0) return alert(say("model.empty"));
    context.font = FONT;
    const labels = labelsOf(layers, say);
    const widest = Math.max(36, ...labels.flat().map((text) => context.measureText(text).width));
    const label = Math.round(Math.min(Math.max(72, room.surface.size().width * 0.22), widest + 16));
    const value = (at: At): number | null => measured.value(at, batch(), sort);
    const inOrder = sort === "" ? null : sorted(all, value, falling);
    const lay = (): Grid => gridOf(room.surface.size().width, room.surface.size().height, heads, label, inOrder);
    let grid = lay();
    room.extent(extent(grid).width, extent(grid).height);
    if (room.surface.size().width !== now?.width) grid = lay(); // a scrollbar takes its part
    const { layer, head } = choice.hover.value;
    now = {
      grid, ...room.surface.size(), ratio: room.surface.ratio(), left: room.left(), top: room.top(),
      layers, labels, picked: picked(),
      hover: layer === null || head === null ? null : { layer, head }, scale: how, theme: colors,
      value: (at) => valueOf(sort, value(at)), headWord: say("head"),
    };
    const seen = new Set(Array.from(cellsSeen(now), ({ at }) => at.layer));
    pictures.want([...seen], batch(), sizeOf(grid, room.surface.ratio()));
    alert(pictures.error === null ? "" : sentenceOf(pictures.error));
    paintModel(context, now, rows);
    words.textContent = say("model.read");
    scale.show("0", String(pictures.top), colors);
    ruleWords.textContent = pictures.busy ? say("model.loading") : rule(layers, pictures, say);
    belowWords.textContent = sort === "" ? "" : say("model.below", { measure: measureName(sort, say) });
  };

  const place = (event: MouseEvent): { x: number; y: number; at: At | null } => {
    const box = room.surface.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return { x, y, at: now === null ? null : under(now.grid, x, y, room.left(), room.top()) };
  };
  let resting = 0;
  const leave = (): void => {
    window.clearTimeout(resting);
    choice.point(null);
    hint.hide();
  };
  signal.addEventListener("abort", () => window.clearTimeout(resting), { once: true });
  room.surface.canvas.addEventListener("pointermove", (event) => {
    const { x, y, at } = place(event);
    room.surface.canvas.style.cursor = at === null ? "default" : "pointer";
    if (at === null) return leave();
    const { hover } = choice, show = (): void => hint.show(x, y, card(layers, at, measured.of(at.layer, batch()), say));
    if (hover.value.layer !== at.layer || hover.value.head !== at.head) choice.point(at);
    show();
    window.clearTimeout(resting);
    if (measured.of(at.layer, batch()) === undefined)
      resting = window.setTimeout(() => {
        measured.ask(at.layer, batch()).then(() => {
          if (hover.value.layer === at.layer && hover.value.head === at.head) show();
        }, () => undefined);
      }, RESTS);
  }, { signal });
  room.surface.canvas.addEventListener("pointerleave", leave, { signal });
  room.surface.canvas.addEventListener("click", (event) => {
    const { at } = place(event);
    if (at !== null) choice.pick({ ...at, view: "map" });
  }, { signal });
  room.box.addEventListener("keydown", (event) => {
    if (now === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = stepped(now.grid, picked(), event.key);
    if (next === null && event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    leave(); // the keyboard has taken over from the pointer
    if (next === null) return choice.pick({ ...picked(), view: "map" });
    choice.pick(next);
    const at = placeOf(now.grid, next), { width, height } = room.surface.size();
    const to = at === null ? null : towards(now.grid, at.row, at.column, room.left(), room.top(), width, height);
    if (to !== null) room.to(to.left, to.top);
    const known = measured.of(next.layer, batch()) ?? { values: {}, notes: [] };
    live.textContent = card(layers, next, known, say).join(", ");
  }, { signal });

  let lastOrder: string | null = null;
  choice.watch(() => { // measured when an order asks for it, and once for the names of the measures
    const { sort } = choice.drawn.value, entry = batch(), before = lastOrder;
    lastOrder = `${sort} ${entry}`;
    if (lastOrder === before) return; // whoever stopped it meant it
    if (sort !== "") void measured.all(entry);
    else {
      measured.stop();
      if (layers.length > 0) measured.ask(0, entry).catch(() => undefined);
    }
  }, signal);
  choice.watch(controls, signal);
  choice.watch(() => {
    void [choice.picked.value, choice.drawn.value, choice.hover.value, theme(), say("model.read")];
    repaint();
  }, signal);
  room.onScroll(() => {
    leave();
    repaint();
  });
  room.surface.onResize(() => paint());

  const probe = {
    order: (): At[] => (now?.grid.sorted ? [...now.grid.order] : [...all]),
    value: (layer: number, head: number, measure: string): number | null =>
      measured.value({ layer, head }, batch(), measure),
    thumb: (layer: number, head: number): Float32Array => {
      const thumbs = pictures.of(layer), cells = (thumbs?.rows ?? 0) * (thumbs?.columns ?? 0);
      return thumbs?.max.slice(head * cells, (head + 1) * cells) ?? new Float32Array();
    },
  };
  Object.assign(el, { regard: probe });
  return {
    svg: async () => {
      paint();
      const notes = [ruleWords, belowWords].map((some) => some.textContent ?? "").filter((text) => text !== "");
      return now === null ? "" : figure(now, pictures, notes);
    },
    table: async () => {
      for (let layer = 0; layer < layers.length; layer++) await measured.ask(layer, batch());
      const names = measured.names(batch());
      return [
        ["layer", "name", "kind", "head", ...names],
        ...all.map((at) => [
          at.layer, layers[at.layer]!.name, layers[at.layer]!.kind, at.head,
          ...names.map((name) => measured.value(at, batch(), name) ?? ""),
        ]),
      ];
    },
    probe,
  };
};
