/** All views: one entry each says what draws it, when it is offered, and what the shell puts around it. */
import type { ViewName } from "../choose/choice";
import type { TraceInfo } from "../trace/source";
import { compare } from "./compare/compare";
import { edit } from "./edit/edit";
import { flow } from "./flow/flow";
import { heads } from "./heads/heads";
import { image } from "./image/image";
import { hasPatches } from "./image/patches";
import { map } from "./map/map";
import { model } from "./model/model";
import { numbers } from "./numbers/numbers";
import { readings } from "./readings/readings";
import { training } from "./training/training";
import type { View } from "./parts/view";

export interface ViewEntry {
  readonly view: View;
  readonly controls?: readonly ("scale" | "pool")[]; // that the foot offers
  readonly hint?: true; // its sentence stands above it; the others say it themselves, beside what it depends on
  readonly pairs?: true; // it shows a second trace beside the first, which the shell lets choose
  readonly isOffered?: (info: TraceInfo | undefined, isServed: boolean) => boolean; // always, where it is left out
}

export const VIEW: Readonly<Record<ViewName, ViewEntry>> = {
  map: { view: map, controls: ["scale", "pool"], hint: true },
  heads: { view: heads },
  model: { view: model, controls: ["scale"] },
  numbers: { view: numbers },
  flow: { view: flow, controls: ["scale"] },
  edit: { view: edit, hint: true },
  compare: { view: compare, controls: ["scale", "pool"], pairs: true },
  image: { view: image, controls: ["scale"], isOffered: (info) => info !== undefined && hasPatches(info) },
  training: { view: training, controls: ["scale", "pool"], isOffered: (_, isServed) => isServed },
  readings: { view: readings, controls: ["scale"], pairs: true, isOffered: (info) => info?.reading !== undefined },
};
