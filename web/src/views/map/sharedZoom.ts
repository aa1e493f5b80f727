/** The zoom while it moves, shared by all panels of a choice; the choice, and so the address, hears of it at rest. */
import { type Signal, signal } from "@preact/signals";
import type { Choice, Zoom } from "../../choose/choice";

const REST = 180; // milliseconds

export interface SharedZoom {
  readonly live: Signal<Zoom | null>;
  readonly move: (zoom: Zoom | null) => void;
  readonly follow: (zoom: Zoom | null) => void; // the choice says so
}

const all = new WeakMap<Choice["picked"], SharedZoom>(); // choices that differ only in how they are drawn pick as one

export function sharedZoom(choice: Choice): SharedZoom {
  const known = all.get(choice.picked);
  if (known !== undefined) return known;
  let written = choice.picked.peek().zoom;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const live = signal(written);
  const shared: SharedZoom = {
    live,
    move: (zoom) => {
      live.value = zoom;
      clearTimeout(timer);
      timer = setTimeout(() => {
        written = zoom;
        choice.pick({ zoom });
      }, REST);
    },
    follow: (zoom) => {
      if (zoom === written) return;
      written = zoom;
      clearTimeout(timer);
      live.value = zoom;
    },
  };
  all.set(choice.picked, shared);
  return shared;
}
