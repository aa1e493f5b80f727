import { CodedError } from "../errors";

/** A file that cannot be opened, or a question that it cannot answer, in one sentence. */
export class TraceError extends CodedError {
  override readonly name = "TraceError";
}
