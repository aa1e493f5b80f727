/** The bar above the steps: which cell it is, a walk through the steps, and what is shown of them. */
import type { Say } from "../../language/language";
import { h } from "../parts/element";
import { FEW } from "./tables";
import type { StepName, Work } from "./work";

export interface Toolbar {
  readonly title: string;
  readonly step: StepName; // in hand
  readonly showsAll: boolean; // all steps, or those up to the one in hand
  readonly showsChannels: boolean;
  readonly walk: (by: number) => void;
  readonly setAll: (on: boolean) => void;
  readonly setChannels: (on: boolean) => void;
}

export function toolbar(work: Work, bar: Toolbar, say: Say): HTMLElement[] {
  const place = work.steps.indexOf(bar.step), last = work.steps.length - 1;
  const button = (name: "back" | "forward", by: number, off: boolean): HTMLElement =>
    h(
      "button", { type: "button", "data-do": name, disabled: off, onclick: () => bar.walk(by) },
      `${by < 0 ? "← " : ""}${say(`numbers.${name}`)}${by > 0 ? " →" : ""}`,
    );
  const tick = (name: "all" | "channels", on: boolean, set: (on: boolean) => void): HTMLElement => {
    const box = h("input", { type: "checkbox", "data-do": name });
    box.checked = on;
    box.addEventListener("change", () => set(box.checked));
    return h("label", {}, box, say(`numbers.${name}`));
  };
  const isLong = Math.max(work.q ? work.numbers.d : 0, work.v ? work.numbers.e : 0) > FEW;
  const group = h(
    "div", { class: "walk", role: "group", "aria-label": say("numbers.walk") },
    button("back", -1, place <= 0),
    h(
      "span", { class: "place", "aria-live": "polite" },
      say("numbers.place", { step: place + 1, steps: work.steps.length }),
    ),
    button("forward", 1, place >= last),
    tick("all", bar.showsAll, bar.setAll),
    isLong && tick("channels", bar.showsChannels, bar.setChannels),
  );
  return [h("span", { class: "which" }, bar.title), group];
}
