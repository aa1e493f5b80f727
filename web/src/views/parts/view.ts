/** A view is one function that fills an element from a source and a choice; where it runs is somebody else's business. */
import type { ReadonlySignal } from "@preact/signals";
import type { Choice } from "../../choose/choice";
import type { Say } from "../../language/language";
import type { Source } from "../../trace/source";
import type { Server } from "../../hosts/server";
import type { Theme } from "../../paint/theme";

export interface Scene {
  readonly el: HTMLElement; // empty, as large as the view may be; the view watches its size
  readonly source: Source;
  readonly other: Source | null; // what is compared with it
  readonly choice: Choice;
  readonly say: Say; // words in the reader's language
  readonly theme: () => Theme; // colours now; reads a signal, so that watching views repaint when it changes
  readonly server: Server | null; // where a model can run; null in a page and a notebook
  readonly signal: AbortSignal; // fires when the view goes
}

/** What can be taken along of a view. */
export interface ViewExports {
  readonly svg?: () => Promise<string>; // a picture with real text
  /** The source whose numbers it shows, where it opens one by itself; null while there is none. */
  readonly of?: ReadonlySignal<Source | null>;
  readonly table?: () => Promise<readonly (readonly (string | number)[])[]>; // first line: names
  /** Numbers as drawn, for whoever checks them; the element carries it as `el.regard`. */
  readonly probe?: Readonly<Record<string, (...about: never[]) => unknown>>;
}

export type View = (scene: Scene) => ViewExports;
