/** A file that cannot be opened, in one sentence; `newer` where another version of regard wrote it. */
export class TraceError extends Error {
  override readonly name = "TraceError";
  constructor(text: string, readonly newer = false) {
    super(text);
  }
}

/** A name from a file, short enough for a sentence. */
export const short = (text: string): string => (text.length > 80 ? `${text.slice(0, 80)}…` : text);
