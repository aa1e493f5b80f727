/**
 * What a model made of one text, in numbers.
 * Made from src/regard/views/readings/reading.py: change that, then run
 * `python -m regard.views.readings.reading web/src/trace/reading.ts`.
 */

/** A token, and the probability that the model gives it. */
export interface LikelyToken {
  readonly name: string;
  readonly share: number;
}

/** What a model expects at the place of one token, which it does not see there. */
export interface Guess {
  readonly logProb: number; // of the real token, in nats
  readonly rank: number; // of the real token; 1: the model's first guess
  readonly top: readonly LikelyToken[]; // the likeliest, the first of them first
}

/** The guesses at those tokens that both models guess. */
export interface CommonGuesses {
  readonly tokens: number;
  readonly logProb: number; // of the real tokens, in nats, mean
  readonly first: number; // share whose first guess is the real token
}

/** What it took to write a few tokens after the text, one at a time: the likeliest that stands for text. */
export interface WritingCost {
  readonly tokens: number;
  readonly passes: number; // calls of the model
  readonly positions: number; // tokens that were computed in all calls together
  readonly seconds: number;
  readonly cached: boolean; // whether keys and values of earlier tokens were kept
  readonly text: string; // what was written
}

/** One model, and what it made of the text. Shares and means are over all rows of all heads. */
export interface Reading {
  readonly name: string;
  readonly objective: "next" | "masked" | null; // what it predicts; null: no token
  readonly parameters: number;
  readonly layers: number;
  readonly heads: readonly number[]; // of each layer
  readonly tokens: number;
  readonly mayLook: number; // share of the map that queries may look at
  readonly back: number; // share of the weight on earlier tokens
  readonly itself: number;
  readonly ahead: number;
  readonly distance: number; // mean |query − key|, in tokens
  readonly entropy: number; // bits, mean
  readonly changeBefore: number; // largest change of an output before the last word when that is changed
  readonly spans: readonly (readonly [number, number] | null)[] | null; // characters of the text, one entry per token
  readonly guesses: readonly (Guess | null)[]; // one entry per token; null where none is made
  readonly logProb: number | null; // of the real tokens, in nats, mean over the guesses
  readonly common: CommonGuesses | null; // null: the two models guess no token in common
  readonly writing: WritingCost | null; // null: it does not write
}
