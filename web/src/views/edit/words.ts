/** What an edit does, in words. */
import type { EditSpec } from "../../trace/messages";
import { shortenText } from "../../paint/text";
import type { Say } from "../../language/language";
import { type TraceInfo, tokensOf } from "../../trace/source";

/** The name of a query or key of a layer; its number where its text is not known. */
export function nameOf(info: TraceInfo, layer: number, batch: number, which: "queries" | "keys", at: number): string {
  const text = tokensOf(info, layer, batch, which)?.shown[at];
  return text === undefined ? String(at) : shortenText(text, 24);
}

/** "layer 3, head 1, 5 muted" */
export function editWords(edit: EditSpec, info: TraceInfo, batch: number, say: Say): string {
  const { layer } = edit;
  const all = info.layers[edit.layer]?.shape[1] ?? 0;
  const whole = edit.heads === null || edit.heads.length >= all;
  const heads = (edit.heads ?? []).join(say("comma"));
  if (edit.kind !== "block") return whole ? say("edit.chip.layer", { layer }) : say("edit.chip.head", { layer, heads });
  const query = edit.query === null ? "*" : nameOf(info, edit.layer, batch, "queries", edit.query);
  const key = edit.key === null ? "*" : nameOf(info, edit.layer, batch, "keys", edit.key);
  return edit.heads === null ? say("edit.chip.block.all", { layer, query, key })
    : say("edit.chip.block", { layer, heads, query, key });
}
