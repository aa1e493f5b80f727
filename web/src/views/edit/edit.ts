/** Mute a head, block a glance, run again: the only view that shows causes. It needs a model, so it is served only. */
import { signal } from "@preact/signals";
import { sameAttention } from "../../choose/move";
import type { EditOf, Effect } from "../../hosts/server";
import { strongest } from "../../trace/rowFacts";
import { isAbort, sentenceOf } from "../../language/errorText";
import type { Row, Source, Tile } from "../../trace/source";
import { blockMap, blockRow, type Glance, SMALL } from "./block";
import { shifts } from "./differ";
import { button } from "./dom";
import { reached, sameEdits, toggleBlock } from "./edits";
import { effectSection } from "./effect";
import { muteGrid } from "./mute";
import { editWords, nameOf } from "./words";
import { h } from "../parts/element";
import type { View } from "../parts/view";

interface State {
  readonly edits: readonly EditOf[];
  readonly effect: Effect | null;
  readonly ran: readonly EditOf[]; // the edits of that effect
  readonly where: "head" | "layer" | "all";
}
/** What was edited stays while the trace is open, whichever view is looked at meanwhile. */
const kept = new WeakMap<Source, State>();
const FRESH: State = { edits: [], effect: null, ran: [], where: "head" };
const ROW = 8;

export const edit: View = ({ el, source, choice, say, server, signal: until, ...rest }) => {
  const scene = { el, source, choice, say, server, signal: until, ...rest };
  const { info } = source;
  el.classList.add("edit");
  const alert = (words: string): void => {
    const line = h("p", { class: "alone" }, words);
    line.setAttribute("role", "alert");
    el.replaceChildren(line);
  };
  const state = signal<State>(kept.get(source) ?? FRESH);
  const busy = signal<"" | "running" | { readonly failed: string }>("");
  const probe = { edits: () => state.value.edits, effect: () => state.value.effect, run: () => run() };
  Object.assign(el, { regard: probe });
  if (server === null) return alert(say("edit.unserved")), { probe };
  if (!info.layers.some((layer) => layer.shape.every((size) => size > 0))) return alert(say("edit.empty")), { probe };
  const set = (part: Partial<State>): void => {
    state.value = { ...state.value, ...part };
    kept.set(source, state.value);
  };
  const change = (how: (edits: readonly EditOf[]) => EditOf[]): void => set({ edits: how(state.value.edits) });

  let end: AbortController | null = null;
  const run = async (): Promise<void> => {
    const { edits } = state.value;
    end?.abort();
    const mine = (end = new AbortController());
    busy.value = "running";
    try {
      const effect = await server.edit(info.id, edits, AbortSignal.any([mine.signal, until]));
      set({ effect, ran: edits });
      busy.value = "";
      result.scrollIntoView?.({ block: "nearest" });
    } catch (error) {
      if (end === mine) busy.value = isAbort(error) || mine.signal.aborted ? "" : { failed: sentenceOf(error) };
    }
  };

  const layers = (): readonly number[] => sameAttention(info, choice.picked.value.layer);
  const mutes = muteGrid(info, layers, say, change);
  const block = (glance: Glance): void => {
    const { layer, head } = choice.picked.value, { where } = state.value;
    const [in_, of] = [where === "all" ? layers() : [layer], where === "head" ? [head] : null];
    change((edits) => toggleBlock(edits, in_, of, glance.query, glance.key));
    choice.pick(glance);
  };
  const cells = blockMap(scene, block);
  const where = h("select");
  for (const value of ["head", "layer", "all"] as const) {
    const option = h("option", {}, say(`edit.block.in.${value}`));
    option.value = value;
    where.append(option);
  }
  where.addEventListener("change", () => set({ where: where.value as State["where"] }));
  const how = h("p", { class: "pale" }), row = h("div"), chips = h("div", { class: "edits" }), result = h("div");
  const status = h("p", { class: "status" });
  status.setAttribute("role", "status");
  const go = button(say("edit.run"), () => (busy.value === "running" ? end?.abort() : void run()), "strong");
  el.append(
    h("section", {}, h("h2", {}, say("edit.mute")), h("p", { class: "pale" }, say("edit.mute.how")), mutes.grid),
    h("section", {}, h("h2", {}, say("edit.block")), how, h("label", {}, `${say("edit.block.where")} `, where),
      cells.box, row),
    h("section", {}, h("h2", {}, say("edit.edits")), chips, h("p", { class: "buttons" }, go, status), result),
  );

  /** Muted heads and the list of edits. */
  choice.watch(() => {
    const { edits, where: now } = state.value, { layer, head, batch } = choice.picked.value;
    mutes.mark(edits, layer, head);
    where.value = now;
    const none = [h("p", { class: "pale" }, say("edit.none"))];
    chips.replaceChildren(...(edits.length === 0 ? none : edits.map((one, i) => {
      const words = editWords(one, info, batch, say);
      const chip = button(`${words} ×`, () => change((all) => all.filter((_, at) => at !== i)), "chip");
      chip.setAttribute("aria-label", say("edit.remove", { what: words }));
      return chip;
    })));
    if (edits.length > 1) chips.append(button(say("edit.clear"), () => set({ edits: [] }), "quiet"));
    go.disabled = edits.length === 0 && busy.value !== "running";
    go.textContent = say(busy.value === "running" ? "edit.stop" : "edit.run");
    status.textContent = busy.value === "running" ? say("edit.running", { count: edits.length })
      : busy.value === "" ? "" : say("edit.failed", { why: busy.value.failed });
    status.classList.toggle("warn", typeof busy.value === "object");
  }, until);

  /** What the last run gave. */
  choice.watch(() => {
    const { effect, ran, edits } = state.value;
    const compare = (trace: string) => (): void => {
      choice.pick({ layer: reached(ran, choice.picked.peek().layer, info.layers.length) });
      el.dispatchEvent(new CustomEvent("regard:compare", { detail: { trace }, bubbles: true, composed: true }));
    };
    result.replaceChildren(...(effect === null ? []
      : [effectSection(effect, !sameEdits(ran, edits), say, compare(effect.trace))]));
  }, until);

  const tile = signal<{ readonly of: string; readonly tile: Tile } | null>(null);
  const found = signal<{ readonly of: string; readonly row: Row } | null>(null);
  const placed = (): { of: string; small: boolean } => {
    const { layer, head, batch } = choice.picked.value;
    const [, , queries, keys] = info.layers[layer]?.shape ?? [0, 0, 0, 0];
    return { of: `${layer} ${head} ${batch}`, small: queries > 0 && queries <= SMALL && keys <= SMALL };
  };
  /** Asks for the small map and the row in hand when another is picked. */
  let asked = "", askedRow = "";
  choice.watch(() => {
    const { layer, head, batch, query } = choice.picked.value, { of, small } = placed();
    if (small && asked !== of) {
      asked = of;
      source.tile({ layer, batch, head, level: 0, row: 0, column: 0 }, false, until)
        .then((got) => asked === of && (tile.value = { of, tile: got }), () => undefined);
    }
    const name = `${of} ${query}`;
    if (query === null || askedRow === name) return;
    askedRow = name;
    source.row({ layer, batch, head }, query, until)
      .then((got) => askedRow === name && (found.value = { of: name, row: got }), () => undefined);
  }, until);
  choice.watch(() => {
    const { layer, head, batch, query, key } = choice.picked.value, { of, small } = placed(), { edits } = state.value;
    how.textContent = small ? say("edit.block.how", { layer, head })
      : query === null ? say("edit.block.pick") : "";
    cells.box.hidden = !small;
    if (small && tile.value?.of === of) cells.paint({ layer, batch, head }, tile.value.tile, edits, { query, key });
    row.replaceChildren();
    if (query === null || found.value?.of !== `${of} ${query}`) return;
    const best = strongest(found.value.row, ROW);
    const { allowed, weights } = found.value.row;
    if (key !== null && allowed[key] === 1 && !best.some((one) => one.key === key))
      best.push({ key, weight: weights[key]! });
    row.append(
      h("p", { class: "pale" }, say("edit.block.row", { query: nameOf(info, layer, batch, "queries", query) })),
      blockRow(scene, { layer, batch, head }, query, best, found.value.row, edits, block),
    );
  }, until);

  return {
    probe,
    table: async () => [
      ["token", "before", "after"],
      ...shifts(state.value.effect?.before ?? [], state.value.effect?.after ?? [])
        .map((one) => [one.name, one.before ?? "", one.after ?? ""]),
    ],
  };
};
