/** Mute a head, block a glance, run again: the only view that shows causes. It needs a model, so it is served only. */
import { sameAttention } from "../../choose/move";
import { h } from "../parts/element";
import type { Scene, View } from "../parts/view";
import { BlockSection } from "./blockSection";
import { shifts } from "./diff";
import { EditState } from "./editState";
import { listSection } from "./listSection";
import { muteGrid } from "./mute";

export const edit: View = (scene) => {
  const { el, source, say, server, signal } = scene;
  const state = new EditState(source, server, signal);
  const probe = {
    edits: () => state.now.value.edits, effect: () => state.now.value.effect, run: () => state.run(),
  };
  Object.assign(el, { regard: probe });
  el.classList.add("edit");
  const isEmpty = !source.info.layers.some((layer) => layer.shape.every((size) => size > 0));
  if (server === null || isEmpty) {
    const words = say(server === null ? "edit.unserved" : "edit.empty");
    el.replaceChildren(h("p", { class: "alone", role: "alert" }, words));
    return { probe };
  }
  el.append(muteSection(scene, state), new BlockSection(scene, state).element, listSection(scene, state));
  return { probe, table: async () => [["token", "before", "after"], ...tableOf(state)] };
};

/** The heads to mute. */
function muteSection({ source, choice, say, signal }: Scene, state: EditState): HTMLElement {
  const layers = (): readonly number[] => sameAttention(source.info, choice.picked.value.layer);
  const { grid, mark } = muteGrid(source.info, layers, say, state.change);
  choice.watch(() => {
    const { layer, head } = choice.picked.value;
    mark(state.now.value.edits, layer, head);
  }, signal);
  return h("section", {}, h("h2", {}, say("edit.mute")), h("p", { class: "pale" }, say("edit.mute.how")), grid);
}

/** The chances before and after. */
function tableOf(state: EditState): (string | number)[][] {
  const { effect } = state.now.value;
  return shifts(effect?.before ?? [], effect?.after ?? []).map(({ name, before, after }) =>
    [name, before ?? "", after ?? ""]);
}
