/** What is known of a map besides its cells: which rows and columns are hidden, and how far it can be trusted. */
import type { Say } from "../../language/language";
import type { Hidden, LayerInfo, Proof, Source } from "../../trace/source";
import { capitalise } from "../../paint/text";
import { mapKindWords, proofWords } from "../parts/proofWords";
import { type Head, placeOf } from "./head";

export interface LayerNote {
  readonly hidden: () => Hidden | null; // null: not known yet
  readonly note: (say: Say) => { readonly text: string; readonly about: string }; // "" where there is nothing to say
  readonly look: (head: Head) => void;
}

const NOTHING: Hidden = { blind: new Uint8Array(0), unseen: new Uint8Array(0) };

/** Asks when the head changes and calls `changed` when it knows more. A source that cannot tell hides nothing. */
export function watchLayer(source: Source, changed: () => void, signal: AbortSignal): LayerNote {
  let hidden: Hidden | null = null, hiddenOf = "";
  let layer = -1, proof: Proof | null = null;
  const look = (head: Head): void => {
    const at = placeOf(head), name = Object.values(at).join("/");
    if (name !== hiddenOf) {
      hiddenOf = name;
      hidden = null;
      const known = (found: Hidden): void => {
        if (hiddenOf !== name || signal.aborted) return;
        hidden = found;
        changed();
      };
      source.hidden(at, signal).then(known, () => known(NOTHING));
    }
    if (layer === head.layer) return;
    layer = head.layer;
    proof = null;
    source.proof(head.layer, signal).then((found) => {
      if (layer !== head.layer || signal.aborted) return;
      proof = found;
      changed();
    }, () => undefined);
  };
  return { hidden: () => hidden, look, note: (say) => noteOf(source.info.layers[layer], proof, say) };
}

/** A short label, and all that stands behind it. */
function noteOf(info: LayerInfo | undefined, proof: Proof | null, say: Say): { text: string; about: string } {
  if (info === undefined) return { text: "", about: "" };
  const about = [proof?.why ?? "", ...info.notes].filter((line) => line !== "").join("\n");
  if (info.how !== "computed") return { text: capitalise(mapKindWords(info.how, say)), about };
  if (proof === null || proof.status === "verified") return { text: "", about: "" };
  return { text: capitalise(proofWords(proof, say)), about };
}
