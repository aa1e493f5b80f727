/** An error that a reader may meet: its message is a sentence in English; by its code a page says it in its language. */
export type About = Readonly<Record<string, string | number>>; // what the sentence names

export class Coded extends Error {
  constructor(text: string, readonly code = "", readonly about: About = {}) {
    super(text);
  }
}
