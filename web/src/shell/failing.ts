/** What went wrong, as far as the studio must tell cases apart. */

/** Whether somebody stopped it on purpose. */
export const isAbort = (error: unknown): boolean => error instanceof Error && error.name === "AbortError";

/** Whether there was no answer at all: browsers reject a fetch without connection with a TypeError. */
export const isLost = (error: unknown): boolean =>
  error instanceof Error &&
  (["Lost", "NetworkError"].includes(error.name) ||
    (error instanceof TypeError && /fetch|network|load failed|connection/i.test(error.message)));

/** The sentence of an error; long ones are cut, since a stranger's file may have written them. */
export function sentenceOf(error: unknown): string {
  const text = error instanceof Error ? error.message : typeof error === "string" ? error : "";
  return (text.trim() || "?").slice(0, 600);
}
