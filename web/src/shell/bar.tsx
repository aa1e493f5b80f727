/** The top bar: what is being looked at, what runs next, language, colours, help. */
import { nextMode } from "./appearance";
import { setLanguage } from "./begin";
import { language, say } from "../language/language";
import { localTraceName, openFile, openTrace } from "./openTrace";
import { FilePicker } from "./filePicker";
import { Compose } from "./run";
import type { Studio } from "./state";

const SIGN = { auto: "◐", light: "☀", dark: "☾" } as const;

export function Bar({ studio }: { studio: Studio }) {
  const { mode } = studio.look;
  const other = language.value === "en" ? "zh" : "en";
  return (
    <header class="bar">
      <strong class="mark" aria-label="regard">regard</strong>
      {studio.host.server === null ? <LocalTracePicker studio={studio} /> : <ServedControls studio={studio} />}
      <span class="ends">
        <button
          type="button" class="quiet" lang={other} title={say("shell.language")} aria-label={say("shell.language")}
          onClick={() => setLanguage(other)}
        >
          {other === "zh" ? "中文" : "EN"}
        </button>
        <button
          type="button" class="quiet" title={say(`shell.theme.${mode.value}`)}
          aria-label={say(`shell.theme.${mode.value}`)} onClick={() => nextMode(mode)}
        >
          {SIGN[mode.value]}
        </button>
        <button
          type="button" class="quiet" title={say("help.title")} aria-label={say("help.title")}
          onClick={() => (studio.dialog.value = "help")}
        >
          ?
        </button>
      </span>
    </header>
  );
}

/** With a server: the runs that it keeps, and a text for the next one. */
function ServedControls({ studio }: { studio: Studio }) {
  const info = studio.source.value?.info;
  const card = studio.cards.value.find((one) => one.id === studio.trace.value);
  const name = card?.name || info?.name || say("shell.runs");
  return (
    <>
      <button
        type="button" class="current" aria-haspopup="dialog" title={say("shell.runs.title")}
        onClick={() => (studio.dialog.value = "runs")}
      >
        <bdi class="cut">{name.slice(0, 80)}</bdi> <span aria-hidden="true">▾</span>
      </button>
      <Compose studio={studio} />
    </>
  );
}

/** Without one: what is held, one or several, and the way to open a file. */
function LocalTracePicker({ studio }: { studio: Studio }) {
  const info = studio.source.value?.info;
  const traces = studio.localTraces.value;
  const title = [...new Set([info?.name, info?.model])].filter(Boolean).join(" · ").slice(0, 120);
  const text = info?.tokens.find((tokens) => tokens.text)?.text ?? "";
  const at = traces.findIndex((one) => one.source === studio.source.value); // a single one has no name in the address
  return (
    <>
      {traces.length > 1 ? (
        <select
          class="current" aria-label={say("shell.which")} value={at < 0 ? studio.trace.value : localTraceName(studio, at)}
          onChange={(event) => void openTrace(studio, event.currentTarget.value)}
        >
          {traces.map((one, i) =>
            <option key={localTraceName(studio, i)} value={localTraceName(studio, i)}>{one.name.slice(0, 80)}</option>)}
        </select>
      ) : <bdi class="cut name">{title}</bdi>}
      <bdi class="cut text" title={text.slice(0, 2000)}>{text.slice(0, 300)}</bdi>
      <FilePicker words={say("shell.open")} onFile={(file) => void openFile(studio, file)} />
    </>
  );
}
