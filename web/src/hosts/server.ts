/** What a host with a model behind it can do; the browser host fills it, the others have none. */
import type { EditEffect, EditSpec, ModelInfo, RunEvent, RunRequest, TraceCard, TrainingCard } from "../trace/messages";
import type { Source } from "../trace/source";

export interface Server {
  models(): Promise<readonly ModelInfo[]>;
  traces(): Promise<readonly TraceCard[]>;
  trainings(): Promise<readonly TrainingCard[]>;
  open(id: string, run?: number): Promise<Source>;
  openTraining(id: string, step: number, example: number): Promise<Source>;
  upload(file: File): Promise<string>; // the id of the trace
  rename(id: string, name: string): Promise<void>;
  forget(id: string): Promise<void>;
  run(ask: RunRequest, heard: (event: RunEvent) => void, signal: AbortSignal): Promise<void>;
  edit(trace: string, edits: readonly EditSpec[], signal: AbortSignal): Promise<EditEffect>;
  page(id: string): Promise<Blob>; // the trace as one HTML file
}
