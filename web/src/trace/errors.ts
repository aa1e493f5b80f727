/** An error that a reader may meet: its message is a sentence in English; by its code a page says it in its language. */
export type ErrorDetails = Readonly<Record<string, string | number>>; // what the sentence names

export class CodedError extends Error {
  constructor(text: string, readonly code = "", readonly about: ErrorDetails = {}) {
    super(text);
  }
}
