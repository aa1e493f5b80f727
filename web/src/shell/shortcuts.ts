/** Keys do what they mean: in a page of our own from anywhere, in a notebook or below a text only inside the studio. */
import { VIEWS } from "../choose/choice";
import { step, stepHead, stepLayer, zoomBy } from "../choose/move";
import { availableViews } from "./availableViews";
import { type Command, commandOf } from "./keyCommands";
import { shownSource } from "./shownSource";
import type { Studio } from "./state";

/** Listens to keys until the studio goes. */
export function listenToKeys(studio: Studio, element: HTMLElement, inside: boolean): void {
  const ears: EventTarget = inside ? element : element.ownerDocument;
  ears.addEventListener("keydown", (raw) => {
    const event = raw as KeyboardEvent;
    const target = event.composedPath()[0];
    const command = commandOf(event, target instanceof HTMLElement ? target : null);
    if (command === null || studio.dialog.value !== "") return; // a dialog closes itself on Escape
    if (runCommand(studio, command, element)) event.preventDefault();
    if (inside) event.stopPropagation();
  }, { signal: studio.until });
}

/** Does what a command says; false where there was nothing to do. */
export function runCommand(studio: Studio, command: Command, element: HTMLElement): boolean {
  const { choice } = studio;
  const info = (shownSource(studio) ?? studio.source.value)?.info;
  if (command.do === "help") return (studio.dialog.value = "help") !== undefined;
  if (command.do === "text") {
    const field = element.querySelector<HTMLElement>("textarea[data-text]");
    field?.focus();
    return field !== null;
  }
  if (command.do === "release") return release(studio);
  if (info === undefined) return false;
  const picked = choice.picked.value;
  if (command.do === "move") choice.pick(step(picked, info, command.down, command.right));
  else if (command.do === "head") choice.pick(stepHead(picked, info, command.by));
  else if (command.do === "layer") choice.pick(stepLayer(picked, info, command.by));
  else if (command.do === "zoom") choice.pick(zoomBy(picked, info, command.factor));
  else if (command.do === "whole") choice.pick({ zoom: null });
  else {
    const view = VIEWS[command.number];
    if (view === undefined || !availableViews(studio).includes(view)) return false;
    choice.pick({ view });
  }
  return true;
}

/** Lets go: first an open drawer, then what the pointer shows and what is pinned. */
function release(studio: Studio): boolean {
  const { choice } = studio;
  const { query, key } = choice.picked.value;
  choice.point(null);
  if (studio.drawer.value !== "") studio.drawer.value = "";
  else if (query !== null || key !== null) choice.pick({ query: null, key: null });
  else return false;
  return true;
}
