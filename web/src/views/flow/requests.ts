/** What the flow view asks for: the flow of a token, and the raw attention of the same token in the head in hand. */
import type { Selection } from "../../choose/choice";
import type { Flow, FlowAt, HeadAt, Row, Source, TraceInfo } from "../../trace/source";
import { isAbort } from "../../language/errorText";
import type { PartName } from "./layout";

/** The layer whose queries are traced: the last of the decoder, or the last of all. */
export function topLayer(info: TraceInfo): number {
  const decoder = info.layers.findLastIndex((layer) => layer.side === "decoder");
  return decoder >= 0 ? decoder : info.layers.length - 1;
}

/** Whether two layers have the same queries. Their lists of tokens may differ: what is fed, and what is written. */
function haveSameQueries(info: TraceInfo, one: number, other: number): boolean {
  const [a, b] = [info.layers[one], info.layers[other]];
  return a !== undefined && b !== undefined && a.side === b.side && a.shape[2] === b.shape[2];
}

export interface TracedToken {
  readonly query: number;
  readonly raw: HeadAt; // the head in hand where it has the same queries, else one of the top layer
  readonly part: PartName; // over which tokens that head looks
}

/** Which token is traced for a choice; the last where none is picked, or where what is picked stands elsewhere. */
export function tracedToken(info: TraceInfo, picked: Selection): TracedToken | null {
  const top = topLayer(info), above = info.layers[top];
  if (above === undefined || above.shape[2] === 0) return null;
  const batch = Math.min(picked.batch, above.shape[0] - 1), own = haveSameQueries(info, picked.layer, top);
  const layer = own ? picked.layer : top, { shape, kind } = info.layers[layer]!;
  const query = own && picked.query !== null ? Math.min(picked.query, above.shape[2] - 1) : above.shape[2] - 1;
  const raw = { layer, batch, head: Math.min(picked.head, shape[1] - 1) };
  return { query, raw, part: kind === "cross" ? "source" : "target" };
}

/** Holds the answer to the latest question and calls off the one before; asked twice, it asks once. */
export class Latest<Question extends object, Answer> {
  answer: Answer | null = null;
  of: Question | null = null; // what the answer answers
  error: unknown = null;
  private asked = "";
  private call: AbortController | null = null;

  constructor(
    private readonly put: (
      question: Question, signal: AbortSignal, early: (answer: Answer) => void, // a first answer, until the last one
    ) => Promise<Answer>,
    private readonly changed: () => void,
    signal: AbortSignal,
  ) {
    signal.addEventListener("abort", () => this.call?.abort(), { once: true });
  }

  get busy(): boolean {
    return this.call !== null;
  }

  ask(question: Question): void {
    const name = JSON.stringify(question);
    if (name === this.asked) return;
    this.asked = name;
    this.call?.abort();
    const call = new AbortController();
    this.call = call;
    const came = (answer: Answer | null, error: unknown): void => {
      if (this.call !== call) return;
      [this.call, this.answer, this.error, this.of] = [null, answer, error, question];
      this.changed();
    };
    const early = (answer: Answer): void => {
      if (this.call !== call) return;
      [this.answer, this.error, this.of] = [answer, null, question];
      this.changed();
    };
    this.put(question, call.signal, early).then(
      (answer) => came(answer, null),
      (error: unknown) => (isAbort(error) ? undefined : came(null, error)),
    );
  }
}

/** Of a long run first what some rows of each layer say, and the exact flow when it is there. */
export const flows = (source: Source, changed: () => void, signal: AbortSignal): Latest<FlowAt, Flow> =>
  new Latest(async (at, until, early) => {
    const first = await source.flow({ ...at, coarse: true }, until);
    if (first.error === 0) return first;
    early(first);
    return source.flow(at, until);
  }, changed, signal);

type RowAt = HeadAt & { readonly query: number };
export const rows = (source: Source, changed: () => void, signal: AbortSignal): Latest<RowAt, Row> =>
  new Latest(({ query, ...at }, until) => source.row(at, query, until), changed, signal);

const PARTS = ["source", "target"] as const;

/** One line of one part; empty where the flow has it not. */
export function lineOf(flow: Flow, part: PartName, line: number): Float32Array {
  const [values, count] = part === "source" ? [flow.source, flow.m] : [flow.target, flow.n];
  return values === null ? new Float32Array() : values.subarray(line * count, (line + 1) * count);
}

/** The largest share of a line, both parts together. */
export function largest(flow: Flow, line: number): number {
  let most = 0;
  for (const part of PARTS) for (const share of lineOf(flow, part, line)) if (share > most) most = share;
  return most;
}

export interface FedFrom {
  readonly part: PartName;
  readonly token: number;
  readonly share: number;
}

/** The tokens that a token is fed from, the largest share first. */
export function strongest(flow: Flow, line: number, count: number): FedFrom[] {
  const all = PARTS.flatMap((part) =>
    Array.from(lineOf(flow, part, line), (share, token) => ({ part, token, share })));
  return all.filter(({ share }) => share > 0).sort((a, b) => b.share - a.share).slice(0, count);
}
