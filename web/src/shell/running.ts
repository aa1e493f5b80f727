/** Runs a model on what is typed; tokens and rows arrive while it works. What is typed stays, whatever happens. */
import type { ModelInfo, RunEvent } from "../trace/messages";
import { isAbort, isLost, errorText } from "../language/errorText";
import { say } from "../language/language";
import { capitalise } from "../paint/text";
import { reportLost, openTrace } from "./openTrace";
import { remember } from "./remember";
import { NO_RUN, type RunProgress, type Studio } from "./state";

/** The model that would run now: the chosen one, else the first that reads what can be typed, else the first. */
export const chosenModel = ({ models: { value: models }, draft }: Studio): ModelInfo | null =>
  models.find((model) => model.name === draft.value.model) ?? models.find((model) => model.reads !== "picture")
  ?? models[0] ?? null;

const READ = { steps: 0, temperature: 0 } as const; // nothing is to be written freely

const setRunning = (studio: Studio, part: Partial<RunProgress>): void => {
  studio.running.value = { ...studio.running.value, ...part };
};

/** Stops the run under way; what it has shown stays. */
export const stopRun = (studio: Studio): void => studio.stop?.abort();

/** Runs the chosen model on the typed text. Comes back when the run has ended, one way or another. */
export async function runModel(studio: Studio): Promise<void> {
  const { server } = studio.host;
  const model = chosenModel(studio);
  if (server === null || model === null) return;
  const { text, steps, temperature, picture } = studio.draft.value;
  const sees = model.reads === "picture";
  if (text.trim() === "" && !(sees && picture !== null))
    return void (studio.notice.value = { kind: "told", text: say(sees ? "errors.picture" : "errors.empty") });
  remember("text", text, "session");
  remember("model", model.name, "session");
  studio.stop?.abort();
  const stop = (studio.stop = new AbortController());
  studio.notice.value = null;
  studio.running.value = { ...NO_RUN, active: true, words: say("shell.starting", { model: model.name }) };
  const hear = runEvents(studio, () => stop.signal.aborted);
  const writes = model.tasks.includes("generate");
  try {
    await server.run(
      { model: model.name, text, picture, edits: [], ...(writes ? { steps, temperature } : READ) },
      hear.event, AbortSignal.any([stop.signal, studio.until]),
    );
    await hear.rest();
  } catch (error) {
    if (isLost(error)) reportLost(studio);
    else if (!isAbort(error) && !stop.signal.aborted) reportFailedRun(studio, errorText(error));
  } finally {
    if (studio.stop === stop) {
      studio.stop = null;
      setRunning(studio, { active: false });
      if (stop.signal.aborted && !studio.until.aborted) studio.tell(say("shell.stopped"));
    }
    await refresh(studio);
  }
}

/** The same where somebody asked for it: what comes of it is shown, which the training view cannot. */
export function runTyped(studio: Studio): void {
  if (studio.choice.picked.value.view === "training") studio.choice.pick({ view: "map" });
  void runModel(studio);
}

const reportFailedRun = (studio: Studio, why: string): void => {
  studio.notice.value = { kind: "failed", text: say("errors.run", { why }), again: () => void runModel(studio) };
};

/** Asks anew which traces there are; a failure is somebody else's to tell. */
export async function refresh(studio: Studio): Promise<void> {
  try {
    if (studio.host.server && !studio.until.aborted) studio.cards.value = await studio.host.server.traces();
  } catch (error) {
    if (isLost(error)) reportLost(studio);
  }
}

/** Takes the events of one run. Rows are opened one after the other, and only the newest of those that wait. */
function runEvents(
  studio: Studio, gone: () => boolean,
): { event: (event: RunEvent) => void; rest: () => Promise<void> } {
  let waiting: string | null = null;
  let work: Promise<void> | null = null;
  const grow = async (): Promise<void> => {
    while (waiting !== null && !gone()) {
      const trace = waiting;
      waiting = null;
      await openTrace(studio, trace);
    }
    work = null;
  };
  const want = (trace: string): void => {
    waiting = trace;
    work ??= grow();
  };
  return {
    rest: async () => void (await work),
    event: (event) => {
      if (gone()) return;
      if (event.kind === "progress") setRunning(studio, { words: event.text, share: event.share });
      else if (event.kind === "token")
        setRunning(studio, {
          tokens: [...studio.running.value.tokens, event.text], of: event.of,
          share: event.of > 0 ? event.number / event.of : null,
          words: say("shell.writing", { number: event.number, of: event.of }),
        });
      else if (event.kind === "rows") want(event.trace);
      else if (event.kind === "trouble") studio.notice.value = { kind: "told", text: capitalise(event.text) };
      else if (event.kind === "failed") reportFailedRun(studio, event.text);
      else {
        studio.write({ typed: false });
        setRunning(studio, { share: 1, words: say("shell.opening") });
        void refresh(studio);
        want(event.trace);
      }
    },
  };
}
