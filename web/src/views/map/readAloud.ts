/** The row in hand, read aloud once the selection rests. */
import type { Choice } from "../../choose/choice";
import type { Say } from "../../language/language";
import { cellSentence, rowSentence } from "./describe";
import type { Head } from "./head";
import type { RowCache } from "./rows";

const AFTER = 200; // milliseconds

export function rowReader(
  choice: Choice, rows: RowCache, say: Say, speak: (sentence: string) => void,
): (head: Head) => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return (head) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const { query, key } = choice.picked.peek();
      if (query === null) return;
      rows.get(head, query).then((row) => {
        const cell = key === null ? "" : `${cellSentence(row, query, key, head.queries, head.keys, say)} `;
        speak(cell + rowSentence(row, query, head.queries, head.keys, say));
      }, () => undefined);
    }, AFTER);
  };
}
