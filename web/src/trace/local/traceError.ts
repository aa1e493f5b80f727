import { Coded } from "../errors";

/** A file that cannot be opened, or a question that it cannot answer, in one sentence. */
export class TraceError extends Coded {
  override readonly name = "TraceError";
}
