/** What a host with a model behind it can do; the browser host fills it, the others have none. */
import type { Chance, Source } from "../trace/source";

export interface ModelInfo {
  readonly name: string;
  readonly about: string;
  readonly task: "translate" | "generate" | "read" | "see";
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

/** A training run whose maps can be looked at, step by step. */
export interface TrainingCard {
  readonly id: string;
  readonly name: string;
  readonly steps: readonly number[];
  readonly examples: number;
  readonly scores: readonly Readonly<Record<string, number>>[]; // one per step
  readonly losses: readonly (readonly [step: number, loss: number])[]; // of training, also between these steps
}

export interface EditOf {
  readonly kind: "mute" | "block" | "uniform" | "scale";
  readonly layer: number;
  readonly heads: readonly number[] | null; // null: all
  readonly query: number | null;
  readonly key: number | null;
  readonly factor: number | null;
}

export interface RunAsk {
  readonly model: string;
  readonly text: string;
  readonly steps: number; // tokens to write at most; 0: only read
  readonly temperature: number; // 0: the likeliest token
  readonly edits: readonly EditOf[];
  readonly picture: string | null; // a data: address, for models that see
}

/** What arrives while a model runs. */
export type RunEvent =
  | { readonly kind: "progress"; readonly text: string; readonly share: number | null }
  | { readonly kind: "token"; readonly text: string; readonly number: number; readonly of: number }
  | { readonly kind: "rows"; readonly trace: string } // what was seen so far can be opened under this id
  | { readonly kind: "done"; readonly trace: string; readonly text: string | null }
  | { readonly kind: "trouble"; readonly text: string } // beside the run, which goes on
  | { readonly kind: "failed"; readonly text: string };

export interface Effect {
  readonly before: readonly Chance[];
  readonly after: readonly Chance[];
  readonly beforeText: string | null;
  readonly afterText: string | null;
  readonly kl: number | null;
  readonly trace: string; // the edited run
}

export interface Server {
  models(): Promise<readonly ModelInfo[]>;
  traces(): Promise<readonly TraceCard[]>;
  trainings(): Promise<readonly TrainingCard[]>;
  open(id: string, run?: number): Promise<Source>;
  openTraining(id: string, step: number, example: number): Promise<Source>;
  upload(file: File): Promise<string>; // the id of the trace
  rename(id: string, name: string): Promise<void>;
  forget(id: string): Promise<void>;
  run(ask: RunAsk, heard: (event: RunEvent) => void, signal: AbortSignal): Promise<void>;
  edit(trace: string, edits: readonly EditOf[], signal: AbortSignal): Promise<Effect>;
  page(id: string): Promise<Blob>; // the trace as one HTML file
}
