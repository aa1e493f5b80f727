/** All that the studio knows, as signals. What is picked stands in the choice; here stands what it is picked from. */
import { type Signal, signal } from "@preact/signals";
import { Choice } from "../choose/choice";
import type { ModelInfo, TraceCard } from "../trace/messages";
import type { Source } from "../trace/source";
import type { ViewExports } from "../views/parts/view";
import { type Appearance, appearance } from "./appearance";
import type { Host, NamedSource } from "./host";
import { recall } from "./remember";

/** Something that went wrong, told above the view; what is shown stays. */
export interface Notice {
  readonly kind: "failed" | "lost" | "told";
  readonly text: string;
  readonly again?: () => void;
}

/** A short word that goes by itself. */
export interface Toast {
  readonly text: string;
  readonly undo?: () => void;
}

/** A run under way, or the last one. */
export interface RunProgress {
  readonly active: boolean;
  readonly words: string;
  readonly share: number | null;
  readonly tokens: readonly string[];
  readonly of: number;
}

export const NO_RUN: RunProgress = { active: false, words: "", share: null, tokens: [], of: 0 };

/** What is typed and chosen to run next. */
export interface Draft {
  readonly model: string;
  readonly text: string;
  readonly typed: boolean; // by the reader: then no opened trace overwrites it
  readonly steps: number;
  readonly temperature: number;
  readonly picture: string | null;
}

export class Studio {
  readonly choice = new Choice();
  readonly source: Signal<Source | null> = signal(null);
  readonly other: Signal<Source | null> = signal(null);
  readonly trace = signal(""); // the name of the source in the address
  readonly run: Signal<number | null> = signal(null);
  readonly otherTrace = signal("");
  readonly localTraces: Signal<readonly NamedSource[]>;
  readonly models: Signal<readonly ModelInfo[]> = signal([]);
  readonly cards: Signal<readonly TraceCard[]> = signal([]);
  readonly opening = signal(false); // a trace is on its way
  readonly started = signal(false); // the first one has been opened, or there is none
  readonly notice: Signal<Notice | null> = signal(null);
  readonly toast: Signal<Toast | null> = signal(null);
  readonly running: Signal<RunProgress> = signal(NO_RUN);
  readonly draft: Signal<Draft>;
  readonly dialog: Signal<"" | "help" | "runs"> = signal("");
  readonly drawer: Signal<"" | "side" | "panel"> = signal("");
  readonly exports: Signal<ViewExports> = signal({});
  readonly spoken = signal(""); // for screen readers
  readonly again = signal(0); // counts up when the view has to be made anew
  readonly look: Appearance;
  stop: AbortController | null = null; // of the run under way

  constructor(readonly host: Host, readonly until: AbortSignal) {
    this.localTraces = signal(host.sources ?? []);
    this.look = appearance(until);
    const text = recall("text", "session") ?? "";
    this.draft = signal({
      model: recall("model", "session") ?? "", text, typed: text !== "", steps: 24, temperature: 0, picture: null,
    });
  }

  write(part: Partial<Draft>): void {
    this.draft.value = { ...this.draft.value, ...part };
  }

  /** A short word that goes by itself. */
  tell(text: string, undo?: () => void): void {
    this.toast.value = undo === undefined ? { text } : { text, undo };
  }
}
