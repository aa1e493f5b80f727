/** The measures of all layers, asked one after the other, and heads in their order. */
import type { Measures, Source } from "../../trace/source";
import { isAbort } from "../../language/errorText";
import type { At } from "./layout";

/** Heads by a measure; those that have none come last, equal ones stay in the model's order. */
export function sortHeads(heads: readonly At[], value: (at: At) => number | null, falling: boolean): At[] {
  const known = heads.filter((at) => value(at) !== null), unknown = heads.filter((at) => value(at) === null);
  return [...known.sort((a, b) => (falling ? -1 : 1) * (value(a)! - value(b)!)), ...unknown];
}

export class MeasureStore {
  private readonly measures = new Map<string, Measures>();
  private readonly asked = new Map<string, Promise<Measures>>();
  private call: AbortController | null = null;
  error: unknown = null;

  constructor(
    private readonly source: Source, private readonly changed: () => void, private readonly signal: AbortSignal,
  ) {
    signal.addEventListener("abort", () => this.stop(), { once: true });
  }

  of(layer: number, batch: number): Measures | undefined {
    return this.measures.get(`${layer} ${batch}`);
  }

  value(at: At, batch: number, measure: string): number | null {
    const value = this.of(at.layer, batch)?.values[measure]?.[at.head];
    return value === undefined || value === null || Number.isNaN(value) ? null : value;
  }

  /** How many layers have been measured. */
  count(batch: number): number {
    return this.source.info.layers.filter((_, layer) => this.of(layer, batch) !== undefined).length;
  }

  /** The measures that any head has so far. */
  names(batch: number): string[] {
    const names = new Set<string>();
    this.source.info.layers.forEach((_, layer) => {
      for (const [name, values] of Object.entries(this.of(layer, batch)?.values ?? {}))
        if (values.some((value) => value !== null && !Number.isNaN(value))) names.add(name);
    });
    return [...names];
  }

  get running(): boolean {
    return this.call !== null;
  }

  /** One layer, once. */
  ask(layer: number, batch: number, signal: AbortSignal = this.signal): Promise<Measures> {
    const at = `${layer} ${batch}`, asked = this.asked.get(at);
    if (asked !== undefined) return asked;
    const coming = this.source.measures(layer, Math.min(batch, this.source.info.layers[layer]!.shape[0] - 1), signal);
    this.asked.set(at, coming);
    coming.then(
      (measures) => {
        this.measures.set(at, measures);
        this.changed();
      },
      (error: unknown) => {
        this.asked.delete(at);
        if (!isAbort(error)) this.error = error;
        this.changed();
      },
    );
    return coming;
  }

  /** All layers that are not here yet, one after the other, until `stop`. */
  async all(batch: number): Promise<void> {
    this.stop();
    const call = new AbortController();
    this.call = call;
    this.error = null;
    try {
      for (let layer = 0; layer < this.source.info.layers.length && !call.signal.aborted; layer++)
        if (this.of(layer, batch) === undefined) await this.ask(layer, batch, call.signal);
    } catch {
      // the error is kept by `ask`; what was measured stays
    } finally {
      if (this.call === call) this.call = null;
      this.changed();
    }
  }

  stop(): void {
    this.call?.abort();
    this.call = null;
  }
}
