/** Where two texts and two lists of chances differ. */
import type { Probability } from "../../trace/messages";

export interface TextPart {
  readonly text: string;
  readonly changed: boolean;
}

const LONGEST = 600; // parts of either text that are compared; beyond it the whole rest counts as changed
const partsOf = (text: string): string[] =>
  text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}\p{M}]+|\s+|./gsu) ?? [];

/** Both texts in stretches; a stretch that the other text does not have in this order is marked. */
export function diffTexts(before: string, after: string): readonly [TextPart[], TextPart[]] {
  const a = partsOf(before), b = partsOf(after);
  if (a.length > LONGEST || b.length > LONGEST) {
    const changed = before !== after;
    return [[{ text: before, changed }], [{ text: after, changed }]];
  }
  const width = b.length + 1;
  const common = new Uint16Array((a.length + 1) * width); // the longest common order of what is left
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      common[i * width + j] = a[i] === b[j] ? common[(i + 1) * width + j + 1]! + 1
        : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
  const left: TextPart[] = [], right: TextPart[] = [];
  const add = (to: TextPart[], text: string, changed: boolean): void => {
    const last = to[to.length - 1];
    if (last?.changed === changed) to[to.length - 1] = { text: last.text + text, changed };
    else to.push({ text, changed });
  };
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      add(left, a[i++]!, false);
      add(right, b[j++]!, false);
      continue;
    }
    const gone = j === b.length || (i < a.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!);
    if (gone) add(left, a[i++]!, true);
    else add(right, b[j++]!, true);
  }
  return [left, right];
}

export interface Shift {
  readonly name: string;
  readonly before: number | null; // null: not among those that were told
  readonly after: number | null;
}

/** Each name that stands in one of the lists, the strongest of the two shares first. */
export function shifts(before: readonly Probability[], after: readonly Probability[]): Shift[] {
  const of = (list: readonly Probability[], name: string): number | null =>
    list.find((one) => one.name === name)?.share ?? null;
  const names = [...new Set([...before, ...after].map((one) => one.name))];
  const all = names.map((name) => ({ name, before: of(before, name), after: of(after, name) }));
  const weight = (shift: Shift): number => Math.max(shift.before ?? 0, shift.after ?? 0);
  return all.sort((a, b) => weight(b) - weight(a));
}
