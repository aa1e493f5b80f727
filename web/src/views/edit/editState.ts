/** The edits of a trace, the run under way with them, and what the last one gave. */
import { type Signal, signal } from "@preact/signals";
import type { Server } from "../../hosts/server";
import type { EditEffect, EditSpec } from "../../trace/messages";
import { isAbort, errorText } from "../../language/errorText";
import type { Source } from "../../trace/source";

export type BlockScope = "head" | "layer" | "all"; // where a block counts

interface Edits {
  readonly edits: readonly EditSpec[];
  readonly effect: EditEffect | null;
  readonly ran: readonly EditSpec[]; // the edits of that effect
  readonly scope: BlockScope;
}

/** What was edited stays while the trace is open, whichever view is looked at meanwhile. */
const editsBySource = new WeakMap<Source, Edits>();
const NONE: Edits = { edits: [], effect: null, ran: [], scope: "head" };

export class EditState {
  readonly now: Signal<Edits>;
  readonly progress: Signal<"" | "running" | { readonly failed: string }> = signal("");
  private request: AbortController | null = null;

  constructor(
    private readonly source: Source, private readonly server: Server | null, private readonly until: AbortSignal,
  ) {
    this.now = signal(editsBySource.get(source) ?? NONE);
  }

  set(part: Partial<Edits>): void {
    this.now.value = { ...this.now.value, ...part };
    editsBySource.set(this.source, this.now.value);
  }

  change = (how: (edits: readonly EditSpec[]) => EditSpec[]): void => this.set({ edits: how(this.now.value.edits) });

  /** Runs the model with the edits; `done` is called when it has answered. */
  async run(done: () => void = () => undefined): Promise<void> {
    const { edits } = this.now.value;
    if (this.server === null) return;
    this.request?.abort();
    const mine = (this.request = new AbortController());
    this.progress.value = "running";
    try {
      const effect = await this.server.edit(this.source.info.id, edits, AbortSignal.any([mine.signal, this.until]));
      this.set({ effect, ran: edits });
      this.progress.value = "";
      done();
    } catch (error) {
      if (this.request !== mine) return;
      this.progress.value = isAbort(error) || mine.signal.aborted ? "" : { failed: errorText(error) };
    }
  }

  stop(): void {
    this.request?.abort();
  }
}
