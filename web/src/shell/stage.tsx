/** Where a view stands: it is made anew when the trace, the view, the language or the colours change. */
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { ViewName } from "../choose/choice";
import type { Source } from "../trace/source";
import { VIEW } from "../views";
import { currentView } from "./availableViews";
import { CompareWith } from "./compareWith";
import { EditedNotice } from "./editedNotice";
import { errorText } from "../language/errorText";
import { LANGUAGES, type Key, language, say } from "../language/language";
import { compareWith, addLocalTrace, openTrace } from "./openTrace";
import { recall, remember } from "./remember";
import type { Studio } from "./state";

/** What a view may ask of the shell, as an event on its element that bubbles. */
export interface ViewRequest {
  readonly trace?: string; // a trace of the server
  readonly source?: Source; // or one that the view has opened
  readonly name?: string;
}

const nameOf = (studio: Studio, { trace, source, name }: ViewRequest): string =>
  source === undefined ? (trace ?? "") : addLocalTrace(studio, name ?? source.info.name, source);

export function Stage({ studio }: { studio: Studio }) {
  const place = useRef<HTMLDivElement>(null);
  const name = currentView(studio), pairs = VIEW[name].pairs === true;
  const source = studio.source.value!, other = studio.other.value;
  const dark = studio.look.theme.value.dark, words = language.value, again = studio.again.value;
  useLayoutEffect(() => {
    const { view } = VIEW[name];
    const stage = place.current;
    if (stage === null) return undefined;
    const el = stage.ownerDocument.createElement("div");
    el.className = "view";
    el.dataset["view"] = name;
    stage.append(el);
    const end = new AbortController();
    el.addEventListener("regard:compare", (event) => {
      const wanted = nameOf(studio, (event as CustomEvent<ViewRequest>).detail);
      void compareWith(studio, wanted).then(() => studio.choice.pick({ view: "compare" }));
    }, { signal: end.signal });
    el.addEventListener("regard:open", (event) => {
      const wanted = nameOf(studio, (event as CustomEvent<ViewRequest>).detail);
      void openTrace(studio, wanted).then(() => studio.choice.pick({ view: "map" }));
    }, { signal: end.signal });
    try {
      studio.exports.value = view({
        el, source, other: pairs ? other : null, choice: studio.choice, say,
        theme: () => studio.look.theme.value, server: studio.host.server, signal: end.signal,
      });
    } catch (error) {
      studio.exports.value = {};
      const alert = el.appendChild(stage.ownerDocument.createElement("p"));
      alert.setAttribute("role", "alert");
      alert.textContent = say("errors.view", { why: errorText(error) });
    }
    return () => {
      end.abort();
      el.remove();
      studio.exports.value = {};
    };
  }, [name, source, pairs ? other : null, words, dark, again]);
  return (
    <main class="stage" role="tabpanel" aria-label={say(`view.${name}`)}>
      <EditedNotice studio={studio} />
      <ReadingHint studio={studio} view={name} />
      {pairs && <CompareWith studio={studio} />}
      <div class="place" ref={place} aria-busy={studio.opening.value} />
    </main>
  );
}

/** The one sentence on how to read a view; the reader may put it away. */
function ReadingHint({ view }: { studio: Studio; view: ViewName }) {
  const line = useRef<HTMLParagraphElement>(null);
  const key = `${view}.read`;
  const away = recall(`read.${view}`) === "away";
  useEffect(() => {
    if (line.current) line.current.hidden = away;
  }, [view]);
  if (VIEW[view].hint === undefined || !Object.hasOwn(LANGUAGES.en, key)) return null;
  const put = (): void => {
    remember(`read.${view}`, "away");
    if (line.current) line.current.hidden = true;
  };
  return (
    <p class="reading" ref={line} hidden={away}>
      <span title={say(key as Key)}>{say(key as Key)}</span>
      <button
        type="button" class="quiet" aria-label={say("shell.away")} title={say("shell.away")} onClick={put}
      >
        ×
      </button>
    </p>
  );
}
