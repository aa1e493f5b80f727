/** Opening traces: from the server, from what the host holds, from a file that somebody drops. The last wish wins. */
import { batch } from "@preact/signals";
import { type Selection } from "../choose/choice";
import { fit, mostTellingLayer } from "../choose/fit";
import { openLocalSource } from "../trace/local/source";
import type { Source, TraceInfo } from "../trace/source";
import { namesLayer } from "./address";
import { isAbort, isLost, errorText } from "../language/errorText";
import { monitorSource } from "./monitoredSource";
import { say } from "../language/language";
import type { Studio } from "./state";

const RETRY = 4000; // milliseconds between looks whether the server is back

/** The name under which a held source stands in the address: its id where that tells it apart. */
export function localTraceName(studio: Studio, at: number): string {
  const ids = studio.localTraces.value.map((one) => one.source.info.id);
  const id = ids[at] ?? "";
  return id !== "" && ids.indexOf(id) === ids.lastIndexOf(id) ? id : `held-${at + 1}`;
}

const findLocalTrace = (studio: Studio, name: string): Source | null =>
  studio.localTraces.value.find((_, i) => localTraceName(studio, i) === name)?.source ?? null;

/** Tells what went wrong; what is shown stays. */
export function reportFailure(
  studio: Studio, error: unknown, key: "errors.open" | "errors.upload" | "errors.server", again?: () => void,
): void {
  if (isAbort(error) || studio.until.aborted) return;
  if (isLost(error)) return reportLost(studio);
  const text = say(key, { why: errorText(error) });
  studio.notice.value = again === undefined ? { kind: "failed", text } : { kind: "failed", text, again };
}

/** Says that the server does not answer, and looks from time to time whether it is back. */
export function reportLost(studio: Studio): void {
  if (studio.notice.value?.kind === "lost" || studio.until.aborted) return;
  const again = (): void => void retry(studio);
  studio.notice.value = { kind: "lost", text: say(studio.host.server ? "errors.lost" : "errors.lost.kernel"), again };
  if (studio.host.server === null) return;
  const timer = setInterval(() => {
    if (studio.notice.value?.kind !== "lost") clearInterval(timer);
    else again();
  }, RETRY);
  studio.until.addEventListener("abort", () => clearInterval(timer), { once: true });
}

async function retry(studio: Studio): Promise<void> {
  try {
    if (studio.host.server) {
      studio.cards.value = await studio.host.server.traces();
      if (studio.models.value.length === 0) studio.models.value = await studio.host.server.models();
    }
    if (studio.notice.value?.kind === "lost") studio.notice.value = null;
    studio.again.value++;
    if (studio.source.value === null && studio.host.server) await openNewest(studio);
  } catch {
    // still away; the notice stands
  }
}

/** The same source, monitored: a lost connection is reported until an answer comes. */
export const monitor = (studio: Studio, source: Source): Source => monitorSource(source, (error) => {
  if (error !== null && isLost(error)) reportLost(studio);
  else if (error === null && studio.notice.value?.kind === "lost") studio.notice.value = null;
});

/** The source of a name, monitored. */
async function fetchSource(studio: Studio, name: string, run: number | null): Promise<Source> {
  const local = findLocalTrace(studio, name);
  if (local !== null) return local;
  const { server } = studio.host;
  if (server === null) throw new Error(say("errors.unknown", { name }));
  return monitor(studio, await (run === null ? server.open(name) : server.open(name, run)));
}

/** Looks at this source from now on; what is picked follows as far as it fits. */
export function showSource(studio: Studio, source: Source, name: string, run: number | null, picked?: Selection): void {
  batch(() => {
    const same = studio.trace.value === name;
    const first = studio.source.value === null && !namesLayer(studio.host.address?.read() ?? "");
    studio.source.value = source;
    studio.trace.value = name;
    studio.run.value = run;
    const now = studio.choice.picked.value;
    const wanted = picked ?? (same ? now : withoutSelection(now));
    const selection = first ? { ...wanted, layer: mostTellingLayer(source.info) } : wanted;
    studio.choice.picked.value = fitPicked(selection, source.info);
    studio.choice.point(null);
    studio.started.value = true;
    const card = studio.cards.value.find((one) => one.id === name);
    if (card === undefined) return;
    const known = studio.models.value.some((model) => model.name === card.model);
    if (known && !studio.draft.value.typed) studio.write({ text: card.text, model: card.model });
  });
}

/** What is picked, within the trace; a training has a trace of its own, and its layers are known when that is here. */
export const fitPicked = (picked: Selection, info: TraceInfo): Selection =>
  (picked.view === "training" ? picked : fit(picked, info));

/** Another trace has other tokens: view, layer and head stay, the rest is let go. */
const withoutSelection = (picked: Selection): Selection => ({ ...picked, query: null, key: null, zoom: null });

let wishes = 0;

/** Opens a trace by its name; false where that failed (and is told). */
export async function openTrace(
  studio: Studio, name: string, run: number | null = null, picked?: Selection,
): Promise<boolean> {
  const wish = ++wishes;
  studio.opening.value = true;
  try {
    const source = await fetchSource(studio, name, run);
    if (wish === wishes && !studio.until.aborted) showSource(studio, source, name, run, picked);
    return true;
  } catch (error) {
    if (wish === wishes) reportFailure(studio, error, "errors.open", () => {
      studio.notice.value = null;
      void openTrace(studio, name, run, picked);
    });
    return false;
  } finally {
    if (wish === wishes) studio.opening.value = false;
  }
}

/** Opens what was made last; false where the server keeps nothing. */
export async function openNewest(studio: Studio, picked?: Selection): Promise<boolean> {
  const newest = studio.cards.value.reduce<{ id: string; made: string } | null>(
    (best, card) => (best === null || card.made > best.made ? card : best), null);
  return newest !== null && openTrace(studio, newest.id, null, picked);
}

/** Chooses what is compared with it: a trace's name, "" for nothing. */
export async function compareWith(studio: Studio, name: string): Promise<void> {
  studio.otherTrace.value = name;
  if (name === "") return void (studio.other.value = null);
  try {
    const source = await fetchSource(studio, name, null);
    if (studio.otherTrace.value !== name) return;
    studio.other.value = source;
    const { server } = studio.host; // an edited run is younger than our list
    if (server !== null && findLocalTrace(studio, name) === null && !studio.cards.value.some((card) => card.id === name))
      studio.cards.value = await server.traces();
  } catch (error) {
    if (studio.otherTrace.value === name) studio.otherTrace.value = "";
    reportFailure(studio, error, "errors.open");
  }
}

/** Keeps a source that came from a file or a view; gives its name. */
export function addLocalTrace(studio: Studio, name: string, source: Source): string {
  studio.localTraces.value = [...studio.localTraces.value, { name, source: monitor(studio, source) }];
  return localTraceName(studio, studio.localTraces.value.length - 1);
}

/** Takes a trace file: the server keeps it where there is one, else the browser reads it here. */
export async function openFile(studio: Studio, file: File, how: "open" | "compare" = "open"): Promise<void> {
  const { server } = studio.host;
  studio.opening.value = true;
  try {
    let name: string;
    if (server !== null) {
      name = await server.upload(file);
      studio.cards.value = await server.traces();
    } else {
      name = addLocalTrace(studio, file.name, openLocalSource(await file.arrayBuffer(), {}));
    }
    await (how === "open" ? openTrace(studio, name) : compareWith(studio, name));
  } catch (error) {
    reportFailure(studio, error, "errors.upload");
  } finally {
    studio.opening.value = false;
  }
}
