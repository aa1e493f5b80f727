/** What the edit view is pressed by. */
import { h } from "../parts/element";

/** A button that says what it does. */
export const button = (words: string, pressed: () => void, name = ""): HTMLButtonElement =>
  h("button", { type: "button", class: name || null, onclick: pressed }, words);
