/** The manifest of a trace file, once every word of it was found to be of its kind; what is left out is filled in. */
import { isObject } from "../objects";
import { type Manifest, VERSION, WORDS, type Word } from "../schema";
import { short } from "../container";
import { TraceError } from "./traceError";

const DEEPEST = 16;

/** The manifest in this text; a sentence where it is none, is damaged, or is of another version. */
export function manifestOf(text: string): Manifest {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    throw new TraceError("The trace has a manifest that cannot be read; it is damaged, write it again.", "file.header");
  }
  const version = isObject(given) ? given["version"] : undefined;
  if (typeof version !== "number" || !Number.isInteger(version))
    throw new TraceError(
      "The file has a manifest without a version, so it is no trace; give a file from trace.save.", "file.bare",
    );
  if (version !== VERSION) {
    const what = version > VERSION ? "open it with a newer regard" : "write it again with this one";
    throw new TraceError(
      `This is a trace of version ${version}, but this explorer reads version ${VERSION}; ${what}.`,
      version > VERSION ? "file.newer" : "file.older", { version, known: VERSION },
    );
  }
  return readWords("Manifest", given, "") as unknown as Manifest;
}

function readWords(name: string, given: unknown, where: string): Record<string, unknown> {
  const known = WORDS[name]!;
  if (!isObject(given)) throw manifestError(where, "words by name");
  for (const key of Object.keys(given)) if (!Object.hasOwn(known, key)) throw manifestError(`${where}.${key}`, "no such word");
  const read: Record<string, unknown> = {};
  for (const [key, word] of Object.entries(known)) {
    if (Object.hasOwn(given, key)) read[key] = checkWord(word, given[key], `${where}.${key}`);
    else if ("usual" in word) read[key] = word.usual;
    else throw manifestError(`${where}.${key}`, "something");
  }
  return read;
}

function checkWord(word: Word, given: unknown, where: string): unknown {
  if (where.split(".").length > DEEPEST) throw manifestError(where, "less depth");
  if (given === null && word.may) return null;
  if (word.is === "words") return readWords(word.of as string, given, where);
  if (word.is === "list") {
    if (!Array.isArray(given) || !within(word, given.length)) throw manifestError(where, "a list of another kind");
    return given.map((one, i) => checkWord(word.of as Word, one, `${where}.${i}`));
  }
  if (word.one && !word.one.includes(given as string | number)) throw manifestError(where, `one of ${word.one.join(", ")}`);
  if (word.is === "text" && typeof given !== "string") throw manifestError(where, "a text");
  if (word.is === "flag" && typeof given !== "boolean") throw manifestError(where, "true or false");
  if (word.is === "number" || word.is === "whole") {
    if (typeof given !== "number" || !Number.isFinite(given)) throw manifestError(where, "a number");
    if (word.is === "whole" && !Number.isInteger(given)) throw manifestError(where, "a whole number");
    if (!within(word, given)) throw manifestError(where, "a number within its bounds");
  }
  return given;
}

const within = ({ least, most, above, below }: Word, value: number): boolean =>
  !((least !== undefined && value < least) || (most !== undefined && value > most)) &&
  !((above !== undefined && value <= above) || (below !== undefined && value >= below));

function manifestError(where: string, wanted: string): TraceError {
  const place = short(where.replace(/^\./, "") || "its start");
  return new TraceError(
    `The trace says something wrong at ${place}: ${wanted} was wanted; it is damaged.`, "file.damaged", { where: place },
  );
}
