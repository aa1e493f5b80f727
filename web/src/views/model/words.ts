/** What the model view says in words. */
import type { Key, Say } from "../../language/language";
import type { LayerInfo, Measures } from "../../trace/source";
import { shortLayerNames } from "../parts/names";
import type { At } from "./layout";
import type { Pictures } from "./pictures";
import { isPooled } from "./pictures";

const MEASURES: Readonly<Record<string, Key>> = {
  entropy: "model.entropy", distance: "model.distance", sink: "model.sink", itself: "model.itself",
  previous: "model.previous", next: "model.next", duplicate: "model.duplicate", induction: "model.induction",
  rows: "model.rows", blind: "model.blind",
};

/** A measure by its name in the reader's language; "to [CLS]" for a special token. */
export function measureName(measure: string, say: Say): string {
  const key = MEASURES[measure];
  if (key !== undefined) return say(key);
  return measure.startsWith("to ") ? say("model.to", { token: measure.slice(3) }) : measure;
}

/** A measure's value: two places, counts as they are. */
export const valueOf = (measure: string, value: number | null): string =>
  value === null ? "–" : measure === "rows" || measure === "blind" ? String(value) : value.toFixed(2);

/** "self · encoder" */
export function kindOf(layer: LayerInfo, say: Say): string {
  const kinds = { self: "model.self", cross: "model.cross", unknown: "model.unknown" } as const;
  const sides = { encoder: "model.encoder", decoder: "model.decoder" } as const;
  return [say(kinds[layer.kind]), ...(layer.side === "" ? [] : [say(sides[layer.side])])].join(" · ");
}

/** A short name and, where layers differ in it, the kind of each. */
export function labelsOf(layers: readonly LayerInfo[], say: Say): readonly (readonly [string, string])[] {
  const short = shortLayerNames(layers.map((layer) => layer.name)), kinds = layers.map((layer) => kindOf(layer, say));
  const differ = new Set(kinds).size > 1;
  const named = (name: string): string => (/^\d+$/.test(name) ? `${say("layer")} ${name}` : name);
  return short.map((name, i) => [named(name), differ ? kinds[i]! : ""] as const);
}

/** The card of a head. */
export function card(layers: readonly LayerInfo[], at: At, measures: Measures | undefined, say: Say): string[] {
  const layer = layers[at.layer]!, [, , queries, keys] = layer.shape;
  return [
    `${say("layer")} ${at.layer} · ${say("head")} ${at.head}`,
    layer.name,
    `${kindOf(layer, say)} · ${queries} × ${keys}`,
    ...Object.entries(measures?.values ?? {}).flatMap(([name, values]) => {
      const value = values[at.head];
      const known = value !== null && value !== undefined && !Number.isNaN(value);
      return known ? [`${measureName(name, say)} ${valueOf(name, value)}`] : [];
    }),
    ...(measures === undefined ? [say("model.measuring")] : []),
  ];
}

/** By which rule a picture was made smaller. */
export function rule(layers: readonly LayerInfo[], pictures: Pictures, say: Say): string {
  let most = 1, sampled = 0;
  layers.forEach((layer, i) => {
    const thumbs = pictures.of(i);
    if (thumbs === undefined) return;
    most = Math.max(most, isPooled(thumbs, layer.shape[2], layer.shape[3]));
    sampled = Math.max(sampled, thumbs.sampled);
  });
  const how = most === 1 ? say("model.each") : say("model.largest", { n: most });
  return sampled > 0 ? `${how} ${say("model.sampled", { n: sampled })}` : how;
}
