/** Where a token is fed from, layer by layer (rollout), with its raw attention below: the two differ. */
import { MOST_RESIDUAL, NEAREST } from "../../choose/choice";
import { columnsSeen, LONGEST, type Over, planOf, towards, under } from "./layout";
import { flows, lineOf, rows, strongest, topLayer, tracedOf, type Traced } from "./asking";
import { figure } from "./figure";
import { barsOf, type Drawing, FONT, paintFlow } from "./paint";
import { sentenceOf } from "../../language/errorText";
import { button, fill, frame, perFrame, select, slider } from "../parts/dom";
import { made } from "../parts/element";
import { type Names, names, shortLayerNames } from "../parts/names";
import { scroller } from "../parts/scroller";
import { tip } from "../parts/tip";
import type { View } from "../parts/view";

export const flow: View = ({ el, source, choice, say, theme, signal }) => {
  const { info } = source;
  const { bar, stage, foot, live, alert, dress } = frame(el, signal);
  const room = scroller(stage, signal);
  const card = tip(stage);
  const repaint = perFrame(() => paint(), signal);
  const flowing = flows(source, repaint, signal), raw = rows(source, repaint, signal);
  const known = info.layers.every((layer) => layer.values);
  const byNow = (): "weights" | "values" => (known ? choice.drawn.value.by : "weights");
  const measure = (text: string): number => {
    room.surface.context.font = FONT;
    return room.surface.context.measureText(text).width;
  };

  const residualWords = made("span");
  const residualValue = made("output", { minWidth: "32px", fontVariantNumeric: "tabular-nums" });
  const share = slider(
    18, (moved) => choice.draw({ residual: Math.round(moved * MOST_RESIDUAL * 100) / 100 }), signal,
  );
  const byWords = made("span");
  const how = select((value) => choice.draw({ by: value === "values" ? "values" : "weights" }), signal);
  const nearer = button(() => zoomed(2), signal), farther = button(() => zoomed(0.5), signal);
  const line = { display: "inline-flex", alignItems: "center", gap: "6px" };
  const token = made("strong", {
    maxWidth: "240px", overflow: "hidden", textOverflow: "ellipsis", whiteSpace: "nowrap",
  });
  bar.append(
    token, made("label", line, residualWords, share, residualValue), made("label", line, byWords, how),
    made("span", { ...line, gap: "3px" }, farther, nearer),
  );
  nearer.textContent = "+";
  farther.textContent = "−";
  const zoomed = (times: number): void => {
    const { near: before } = choice.drawn.value, middle = (room.left() + room.surface.size().width / 2) / before;
    const near = Math.max(1, Math.min(NEAREST, Math.round(before * times * 1000) / 1000)); // as an address holds it
    choice.draw({ near });
    paint();
    room.to(Math.max(0, middle * near - room.surface.size().width / 2), room.top());
  };

  const controls = (): void => {
    const { residual } = choice.drawn.value;
    residualWords.textContent = say("flow.residual");
    share.value = String(Math.round((residual / MOST_RESIDUAL) * 18));
    share.setAttribute("aria-valuetext", residual.toFixed(2));
    residualValue.textContent = residual.toFixed(2);
    byWords.textContent = say("flow.by");
    fill(how, [["weights", say("flow.weights")], ["values", say("flow.values")]], byNow());
    how.disabled = !known;
    how.title = known ? "" : say("flow.noValues");
    nearer.setAttribute("aria-label", say("flow.nearer"));
    farther.setAttribute("aria-label", say("flow.farther"));
    room.box.setAttribute("role", "application");
    room.box.setAttribute("aria-label", say("flow.stage"));
    const words = [say("flow.read"), say("flow.colors"), say("flow.caution")];
    foot.replaceChildren(...words.map((text, i) => made("span", i === 2 ? { color: "var(--view-warn)" } : {}, text)));
  };

  let kept: { at: string; names: Readonly<Record<"source" | "target", Names>> } | null = null;
  const namesNow = (target: number, of: number, n: number, m: number): Readonly<Record<"source" | "target", Names>> => {
    const at = `${target} ${of} ${n} ${m}`;
    const made = (which: number, count: number): Names => names(info.tokens[which] ?? null, count, measure);
    if (kept?.at !== at) kept = { at, names: { target: made(target, n), source: made(of, m) } };
    return kept.names;
  };

  let now: Drawing | null = null, over: Over | null = null, said = "", shown = { query: -1, near: 0 };
  const traced = (): Traced | null => tracedOf(info, choice.picked.value);

  const paint = (): void => {
    const colors = theme(), at = traced(), { width, height } = room.surface.size();
    const { residual, near, scale } = choice.drawn.value;
    dress(colors);
    if (at === null) return alert(say("flow.empty"));
    flowing.ask({ query: at.query, batch: at.raw.batch, residual, by: byNow() });
    raw.ask({ ...at.raw, query: at.query });
    const found = flowing.answer;
    if (flowing.error !== null) return alert(say("flow.failed", { why: sentenceOf(flowing.error) }));
    alert("");
    if (found === null) return waiting(colors.pale);
    const named = namesNow(found.targetTokens, found.sourceTokens, found.n, found.source === null ? 0 : found.m);
    const short = shortLayerNames(found.layers);
    const into = (layer: string): string => say(/^\d+$/.test(layer) ? "flow.intoLayer" : "flow.into", { layer });
    const labels = [say("flow.inputs"), ...short.slice(1).map(into), say("flow.token")].slice(-found.lines);
    const label = Math.min(Math.max(90, width * 0.2), Math.max(...labels.map(measure)) + 22);
    const name = Math.max(named.target.widest(LONGEST), named.source.widest(LONGEST));
    const plan = planOf({ width, height }, found.lines, named.source.count, found.n, near, label, name);
    room.extent(plan.width > width ? plan.width : 0, plan.height);
    const query = flowing.of?.query ?? at.query, rawOf = raw.of;
    const rawAt = { layer: rawOf === null ? "" : info.layers[rawOf.layer]!.name, head: rawOf?.head ?? 0 };
    if (shown.query !== query || shown.near !== near) {
      shown = { query, near };
      room.to(towards(plan, plan.parts[plan.parts.length - 1]!, query, room.left(), width), room.top());
    }
    const stale = rawOf === null || rawOf.query !== query;
    now = {
      plan, flow: found, raw: stale ? null : raw.answer, rawPart: at.part, query, names: named, labels, over,
      scale, theme: colors, width, height, left: room.left(), top: room.top(),
      words: {
        largest: say("flow.largest"), rollout: say("flow.rollout"),
        source: say("flow.source"), target: say("flow.target"),
        raw: raw.error !== null ? sentenceOf(raw.error) : say("flow.raw", rawAt),
      },
    };
    paintFlow(room.surface.context, now);
    token.textContent = say("flow.of", { token: named.target.whole(query), query });
    const list = strongest(found, 0, 5).map(({ part, token: from, share }) =>
      say("flow.share", { token: named[part].whole(from), share: (100 * share).toFixed(0) }));
    const sentence = say("flow.sentence", { token: named.target.whole(query), list: list.join(say("flow.comma")) });
    if (sentence !== said && !flowing.busy) live.textContent = said = sentence;
  };

  const waiting = (color: string): void => {
    const { context, size } = { context: room.surface.context, size: room.surface.size() };
    context.clearRect(0, 0, size.width, size.height);
    context.font = FONT;
    context.fillStyle = color;
    context.textAlign = "left";
    context.fillText(say("flow.loading"), 16, 28);
  };

  const place = (event: MouseEvent): { x: number; y: number } => {
    const box = room.surface.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const leave = (): void => {
    over = null;
    card.hide();
    choice.point(null);
    repaint();
  };
  room.surface.canvas.addEventListener("pointermove", (event) => {
    if (now === null) return;
    const { x, y } = place(event), { width } = room.surface.size();
    over = under(now.plan, x, y, room.left(), room.top(), width);
    room.surface.canvas.style.cursor = over?.part.name === "target" ? "pointer" : "default";
    if (over === null) return leave();
    const { part, token: column, row } = over, at = traced();
    const own = at !== null && part.name === now.rawPart;
    const { layer, head } = at?.raw ?? { layer: null, head: null };
    choice.point(own ? { layer, head, query: now.query, key: column } : { query: now.query });
    const line = typeof row === "number" ? row : 0, weights = barsOf(now, "raw", part.name);
    const share = lineOf(now.flow, part.name, line)[column]!, blocked = now.raw?.allowed[column] === 0;
    const weight = weights === null ? null : blocked ? say("flow.blocked") : weights[column]!.toPrecision(4);
    card.show(x, y, [
      `${now.names[part.name].whole(column)}  ·  ${now.words[part.name]} ${column}`,
      `${now.labels[line] ?? ""}: ${share.toPrecision(4)}`,
      ...(weight === null ? [] : [`${now.words.raw}: ${weight}`]),
      ...(part.name === "target" ? [say("flow.click")] : []),
    ]);
    repaint();
  }, { signal });
  room.surface.canvas.addEventListener("pointerleave", leave, { signal });
  const trace = (query: number): void => choice.pick({ query, layer: traced()?.raw.layer ?? topLayer(info) });
  room.surface.canvas.addEventListener("click", () => {
    if (over?.part.name === "target") trace(over.token);
    else if (over !== null && now?.rawPart === "source") choice.pick({ key: over.token });
  }, { signal });
  room.surface.canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoomed(event.deltaY < 0 ? 1.25 : 0.8);
  }, { signal, passive: false });
  room.box.addEventListener("keydown", (event) => {
    const at = traced();
    if (now === null || at === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const last = now.flow.n - 1;
    const next = { ArrowLeft: at.query - 1, ArrowRight: at.query + 1, Home: 0, End: last }[event.key];
    if (next === undefined && event.key !== "+" && event.key !== "-") return;
    event.preventDefault();
    event.stopPropagation();
    leave(); // the keyboard has taken over from the pointer
    if (next === undefined) zoomed(event.key === "+" ? 2 : 0.5);
    else trace(Math.max(0, Math.min(last, next)));
  }, { signal });

  choice.watch(controls, signal);
  choice.watch(() => {
    void [choice.picked.value, choice.drawn.value, theme(), say("flow.read")];
    repaint();
  }, signal);
  room.onScroll(leave);
  room.surface.onResize(() => paint());

  const probe = {
    share: (at: number, column: number, part: "source" | "target" = "target"): number =>
      (now === null ? undefined : lineOf(now.flow, part, at)[column]) ?? NaN,
    raw: (column: number): number => now?.raw?.weights[column] ?? NaN,
    visible: (): readonly [number, number] =>
      now === null ? [0, -1] : columnsSeen(now.plan, now.plan.parts[now.plan.parts.length - 1]!, now.left, now.width),
  };
  Object.assign(el, { regard: probe });
  return {
    svg: async () => {
      paint();
      return now === null ? "" : figure(now, [token.textContent ?? "", say("flow.colors"), say("flow.caution")]);
    },
    table: async () => {
      paint();
      const drawn = now;
      if (drawn === null) return [["line", "input of", "part", "place", "token", "share"]];
      return [
        ["line", "input of", "part", "place", "token", "share"],
        ...Array.from({ length: drawn.flow.lines }, (_, at) => drawn.plan.parts.flatMap((part) =>
          Array.from(lineOf(drawn.flow, part.name, at), (value, column) =>
            [at, drawn.flow.layers[at] ?? "", part.name, column, drawn.names[part.name].raw(column), value]))).flat(),
      ];
    },
    probe,
  };
};
