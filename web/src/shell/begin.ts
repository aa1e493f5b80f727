/** The first moments of a studio: its language and colours, the address, and the trace that it opens with. */
import { effect } from "@preact/signals";
import { FIRST } from "../choose/choice";
import { fit } from "../choose/fit";
import { readAddress } from "./address";
import { applyTheme } from "./appearance";
import { syncAddress, keepChoiceInside } from "./addressSync";
import { type Language, LANGUAGES, language, preferredLanguage } from "../language/language";
import { compareWith, reportFailure, monitor, localTraceName, showSource, openNewest, openTrace } from "./openTrace";
import { recall, remember } from "./remember";
import { chosenModel, runModel } from "./running";
import type { Studio } from "./state";

/** The language that was chosen before, else the host's, else the machine's. */
function firstLanguage(studio: Studio): Language {
  const remembered = recall("language");
  if (remembered !== null && Object.hasOwn(LANGUAGES, remembered)) return remembered as Language;
  return studio.host.language ?? preferredLanguage(globalThis.navigator?.languages ?? []);
}

/** Speaks another language from now on, here and at the next visit. */
export function setLanguage(wanted: Language): void {
  language.value = wanted;
  remember("language", wanted);
}

/** Starts a studio whose frame stands in `element`; `inside` a page of others that is not ours to name. */
export function startStudio(studio: Studio, element: HTMLElement, inside: boolean): void {
  language.value = firstLanguage(studio);
  const stop = effect(() => {
    applyTheme(element, studio.look.theme.value);
    element.lang = language.value === "zh" ? "zh-Hans" : "en";
    if (!inside) element.ownerDocument.documentElement.lang = element.lang;
  });
  studio.until.addEventListener("abort", stop, { once: true });
  keepChoiceInside(studio);
  syncAddress(studio);
  void openFirst(studio);
}

async function openFirst(studio: Studio): Promise<void> {
  const { host } = studio;
  const place = readAddress(host.address?.read() ?? "");
  studio.choice.drawn.value = place.drawn;
  studio.choice.picked.value = place.picked;
  const own = host.source;
  if (own !== null && !studio.localTraces.value.some((one) => one.source === own))
    studio.localTraces.value = [{ name: own.info.name || own.info.model, source: own }, ...studio.localTraces.value];
  const traces = studio.localTraces.value.map((one) => ({ ...one, source: monitor(studio, one.source) }));
  studio.localTraces.value = traces;
  if (traces.length > 0) {
    const at = Math.max(0, traces.findIndex((_, i) => localTraceName(studio, i) === place.trace));
    const { source } = traces[at]!;
    showSource(studio, source, traces.length > 1 ? localTraceName(studio, at) : "", null, fit(place.picked, source.info));
    if (place.other !== "") void compareWith(studio, place.other);
  }
  if (host.server !== null) await openServed(studio);
  studio.started.value = true;
}

/** Asks a server what it has and opens what the link names, else the newest; an empty one runs its first example. */
async function openServed(studio: Studio): Promise<void> {
  const server = studio.host.server!;
  const place = readAddress(studio.host.address?.read() ?? "");
  const models = server.models().then((all) => {
    studio.models.value = all;
    const wanted = studio.draft.value.model;
    if (!all.some((one) => one.name === wanted)) studio.write({ model: chosenModel(studio)?.name ?? "" });
  });
  models.catch(() => undefined); // told below
  try {
    studio.cards.value = await server.traces();
    if (place.other !== "") void compareWith(studio, place.other);
    const named = place.trace !== "" && studio.source.value === null;
    if (!named || !(await openTrace(studio, place.trace, place.run, place.picked)))
      if (studio.source.value === null) await openNewest(studio, named ? FIRST : place.picked);
    await models;
  } catch (error) {
    return reportFailure(studio, error, "errors.server");
  }
  const first = studio.models.value.find((model) => model.reads === "pair") ?? studio.models.value[0];
  if (studio.source.value !== null || studio.cards.value.length > 0 || first === undefined) return;
  studio.write({ model: first.name, text: studio.draft.value.text || first.example });
  studio.started.value = true;
  if (studio.draft.value.text !== "") await runModel(studio);
}
