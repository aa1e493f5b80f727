/** What was changed about the model while it ran, as the notes of a trace tell it; regard/trace/changes.py writes them. */
import type { TraceInfo } from "./source";

const EDITED = "edited: ", SWAPPED = "swapped: ";

/** Whether a note tells of a change. */
export const isChange = (note: string): boolean => note.startsWith(EDITED) || note.startsWith(SWAPPED);

/** The edits of a trace, each once, in the order they were made; none where the model ran as it is. */
export function editsOf({ notes, layers }: TraceInfo): string[] {
  const all = new Set([...notes, ...layers.flatMap((layer) => layer.notes)].filter(isChange));
  return [...all].map((note) =>
    (note.startsWith(EDITED) ? note.slice(EDITED.length) : `swap(${note.slice(SWAPPED.length)})`));
}
