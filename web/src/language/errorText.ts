/** What went wrong: told apart as far as the studio must, and said in the reader's language. */
import type { ErrorDetails } from "../trace/errors";
import { type Key, LANGUAGES, language, say } from "./language";

/** Whether somebody stopped it on purpose. */
export const isAbort = (error: unknown): boolean => error instanceof Error && error.name === "AbortError";

/** Whether there was no answer at all: browsers reject a fetch without connection with a TypeError. */
export const isLost = (error: unknown): boolean =>
  error instanceof Error &&
  (["Lost", "NetworkError"].includes(error.name) ||
    (error instanceof TypeError && /fetch|network|load failed|connection/i.test(error.message)));

/** The sentence of an error; long ones are cut, since a stranger's file may have written them. */
export function errorText(error: unknown): string {
  const text = error instanceof Error ? error.message : typeof error === "string" ? error : "";
  const { code, about } = (error ?? {}) as { readonly code?: unknown; readonly about?: unknown };
  return (translateError(text, code, about).trim() || "?").slice(0, 600);
}

/** What a code means, in the reader's language; the sentence as it came where the code is not known here. */
export function translateError(text: string, code: unknown, about: unknown): string {
  const key = `code.${String(code)}`;
  if (typeof code !== "string" || !Object.hasOwn(LANGUAGES.en, key)) return text;
  const named: Record<string, string> = {};
  for (const [name, value] of Object.entries((about ?? {}) as ErrorDetails))
    named[name] = typeof value === "number" ? value.toLocaleString(language.value) : String(value);
  return say(key as Key, named);
}
