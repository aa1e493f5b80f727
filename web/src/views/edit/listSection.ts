/** The list of edits, the button that runs the model with them, and what that gave. */
import { h } from "../parts/element";
import type { Scene } from "../parts/view";
import { button } from "./dom";
import type { EditState } from "./editState";
import { firstChangedLayer, sameEdits } from "./edits";
import { effectSection } from "./effect";
import { editWords } from "./words";

/** A section that follows the edits until the scene goes. */
export function listSection(scene: Scene, state: EditState): HTMLElement {
  const { choice, say, signal: until } = scene;
  const chips = h("div", { class: "edits" }), result = h("div");
  const status = h("p", { class: "status", role: "status" });
  const run = (): Promise<void> => state.run(() => result.scrollIntoView?.({ block: "nearest" }));
  const go = button(
    say("edit.run"), () => (state.progress.value === "running" ? state.stop() : void run()), "strong",
  );
  choice.watch(() => {
    const { edits } = state.now.value, progress = state.progress.value, isRunning = progress === "running";
    chips.replaceChildren(...chipsOf(scene, state));
    go.disabled = edits.length === 0 && !isRunning;
    go.textContent = say(isRunning ? "edit.stop" : "edit.run");
    status.textContent = progress === "running" ? say("edit.running", { count: edits.length })
      : progress === "" ? "" : say("edit.failed", { why: progress.failed });
    status.classList.toggle("warn", typeof progress === "object");
  }, until);
  choice.watch(() => {
    const { effect, ran, edits } = state.now.value, stale = !sameEdits(ran, edits);
    result.replaceChildren(
      ...(effect === null ? [] : [effectSection(effect, stale, say, () => compare(scene, state, effect.trace))])
    );
  }, until);
  return h(
    "section", {}, h("h2", {}, say("edit.edits")), chips, h("p", { class: "buttons" }, go, status), result,
  );
}

/** One chip per edit; a click takes it back. */
function chipsOf({ source, choice, say }: Scene, state: EditState): HTMLElement[] {
  const { edits } = state.now.value, { batch } = choice.picked.value;
  if (edits.length === 0) return [h("p", { class: "pale" }, say("edit.none"))];
  const chips = edits.map((edit, i) => {
    const words = editWords(edit, source.info, batch, say);
    const chip = button(`${words} ×`, () => state.change((all) => all.filter((_, at) => at !== i)), "chip");
    chip.setAttribute("aria-label", say("edit.remove", { what: words }));
    return chip;
  });
  const clear = button(say("edit.clear"), () => state.set({ edits: [] }), "quiet");
  return edits.length > 1 ? [...chips, clear] : chips;
}

/** Asks the shell to lay the edited run beside this one, at a layer that the edits can have changed. */
function compare({ el, choice, source }: Scene, state: EditState, trace: string): void {
  const { ran } = state.now.value;
  choice.pick({ layer: firstChangedLayer(ran, choice.picked.peek().layer, source.info.layers.length) });
  el.dispatchEvent(new CustomEvent("regard:compare", { detail: { trace }, bubbles: true, composed: true }));
}
