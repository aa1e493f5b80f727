/** The arrays of a trace file by name; what is wrong with a file is told with what to do about it. */
import { type Container, type Trouble, type MakeError, parseContainer } from "../container";
import { TraceError } from "./traceError";

const ADVICE: Readonly<Record<Trouble, readonly [code: string, toDo: string]>> = {
  small: ["file.small", "write it again"],
  unfinished: ["file.unfinished", "watch again"],
  foreign: ["file.foreign", "give a file from trace.save"],
  cut: ["file.cut", "copy it again"],
  header: ["file.header", "it is damaged, write it again"],
  array: ["file.array", "it is damaged, write it again"],
  long: ["file.long", "it is damaged, copy it again"],
};

const containerError: MakeError = (trouble, what, about) => {
  const [code, toDo] = ADVICE[trouble], file = trouble === "foreign" ? "This is no trace file: it" : "The file";
  return new TraceError(`${file} ${what}; ${toDo}.`, code, about);
};

/** All that stands in a file; throws a TraceError where it is none, or is damaged. */
export const readContainer = (given: ArrayBuffer | Uint8Array): Container => parseContainer(given, containerError);
