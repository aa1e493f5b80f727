/**
 * The messages between a page and the server.
 * Made from src/regard/app/protocol/messages.py: change that, then run
 * `python -m regard.app.protocol.typescript web/src/trace/messages.ts`.
 */

/** One change of the attention. */
export interface EditSpec {
  readonly kind: "mute" | "block" | "uniform" | "scale";
  readonly layer: number; // counts the layers of the trace
  readonly heads: readonly number[] | null; // null: all
  readonly query: number | null;
  readonly key: number | null;
  readonly factor: number | null;
}

/** A model, and what it should read. */
export interface RunRequest {
  readonly model: string;
  readonly text: string;
  readonly steps: number; // tokens to write at most; 0: only read
  readonly temperature: number; // 0: the likeliest token
  readonly edits: readonly EditSpec[];
  readonly picture: string | null; // a data: address, for models that read pictures
}

/** Edits under which a trace's run is made again. */
export interface EditRequest {
  readonly edits: readonly EditSpec[];
}

/** Another name for a trace. */
export interface RenameRequest {
  readonly name: string;
}

/** A model that can run. */
export interface ModelInfo {
  readonly name: string;
  readonly about: string;
  readonly reads: "text" | "pair" | "picture" | "numbers"; // pair: a text that it writes another for
  readonly writes: "text" | null; // null: it only reads
  readonly tasks: readonly ("generate" | "translate" | "summarise" | "read" | "see")[]; // the first is what it is made for
  readonly example: string; // a text that shows it well
}

/** A trace that the server keeps. */
export interface TraceCard {
  readonly id: string;
  readonly name: string;
  readonly model: string;
  readonly text: string;
  readonly made: string; // ISO time
}

/** The best of the scores that decide which weights are kept. */
export interface BestStep {
  readonly score: string;
  readonly value: number;
  readonly step: number;
}

/** A training run: how far it is, its curves, and the steps whose maps can be looked at. */
export interface TrainingCard {
  readonly id: string;
  readonly name: string;
  readonly task: string;
  readonly state: "running" | "finished" | "stopped" | "failed";
  readonly step: number; // the last one that was made
  readonly total: number; // how many steps there will be
  readonly best: BestStep | null; // null: none yet, or unknown which score decides
  readonly steps: readonly number[]; // those with maps
  readonly examples: number;
  readonly losses: readonly (readonly [number, number])[]; // step and training loss
  readonly scores: Readonly<Record<string, readonly (readonly [number, number])[]>>; // of the validations
  readonly speeds: readonly (readonly [number, number])[]; // tokens per second of training
  readonly seconds: number; // that it took so far
  readonly ends: number | null; // when it will be over, in seconds since 1970; null unless it runs
  readonly settings: Readonly<Record<string, string>>;
}

/** The id under which a trace can be opened. */
export interface TraceLink {
  readonly trace: string;
}

/** A token or a class, and its probability. */
export interface Probability {
  readonly name: string;
  readonly share: number;
}

/** What the model gave: a text that it wrote, the next tokens, a masked token, or classes; strongest first. */
export interface ModelOutput {
  readonly text: string | null;
  readonly next: readonly Probability[] | null;
  readonly classes: readonly Probability[] | null;
  readonly masked?: readonly Probability[] | null; // of the first masked token
}

/** Where a model looked that sees a few squares of a picture, one after the other. */
export interface ShownGlimpses {
  readonly size: number; // pixels of the smallest square in either direction; each scale doubles it
  readonly scales: number;
  readonly places: readonly (readonly [number, number])[]; // row and column of the middle of each, in pixels
}

/** The picture that patches were cut from. */
export interface ShownPicture {
  readonly address: string; // a data: or blob: address
  readonly width: number;
  readonly height: number;
  readonly glimpses?: ShownGlimpses | null;
}

/** What a run gave before and after edits. */
export interface EditEffect {
  readonly before: readonly Probability[];
  readonly after: readonly Probability[];
  readonly beforeText: string | null;
  readonly afterText: string | null;
  readonly kl: number | null; // KL divergence in nats, mean over the positions
  readonly trace: string; // the edited run
}

/** What is being done. `step` and `name` say it for those who read another language. */
export interface ProgressEvent {
  readonly kind: "progress";
  readonly text: string;
  readonly share: number | null; // how much of it is done, where that is known
  readonly step: "waiting" | "loading" | "translating" | "summarising";
  readonly name?: string; // of the model that is loaded
}

/** A token that was written, as the text that it adds. */
export interface TokenEvent {
  readonly kind: "token";
  readonly text: string;
  readonly number: number;
  readonly of: number;
}

/** What was seen so far can be opened under this id. */
export interface RowsEvent {
  readonly kind: "rows";
  readonly trace: string;
}

/** The run is over, and kept. */
export interface DoneEvent {
  readonly kind: "done";
  readonly trace: string;
  readonly text: string | null;
}

/** What went wrong beside the run, which goes on. */
export interface TroubleEvent {
  readonly kind: "trouble";
  readonly text: string;
  readonly code?: string;
  readonly about?: Readonly<Record<string, string | number>>;
}

/** The run failed, and why. */
export interface FailedEvent {
  readonly kind: "failed";
  readonly text: string;
  readonly code?: string;
  readonly about?: Readonly<Record<string, string | number>>;
}

/** A request that was refused: one sentence, and its code where there is one. */
export interface ErrorAnswer {
  readonly error: string;
  readonly code?: string;
  readonly about?: Readonly<Record<string, string | number>>;
}

/** What arrives while a model runs. */
export type RunEvent = ProgressEvent | TokenEvent | RowsEvent | DoneEvent | TroubleEvent | FailedEvent;
