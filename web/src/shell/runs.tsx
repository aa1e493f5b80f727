/** The runs that are kept: open one, name it, compare with it, throw it away (and change one's mind). */
import { useState } from "preact/hooks";
import type { TraceCard } from "../trace/messages";
import { Dialog } from "./dialog";
import { language, say } from "../language/language";
import { compareWith, reportFailure, openFile, openNewest, openTrace } from "./openTrace";
import { FilePicker } from "./filePicker";
import { refresh } from "./running";
import type { Studio } from "./state";
import { Toasts } from "./notices";

const UNDO = 6000; // milliseconds to change one's mind

/** When it was made, in the reader's words; what is no date stays as it came. */
export function formatTime(made: string, language: string): string {
  const time = new Date(made);
  return Number.isNaN(time.getTime()) ? made.slice(0, 40)
    : time.toLocaleString(language === "zh" ? "zh-CN" : "en-GB", { dateStyle: "medium", timeStyle: "short" });
}

/** Takes a run off the list at once; the server forgets it when the time to change one's mind is over. */
export function deleteRun(studio: Studio, card: TraceCard): void {
  const server = studio.host.server!;
  const before = studio.cards.value;
  const timer = setTimeout(() => {
    server.forget(card.id).then(() => refresh(studio), (error: unknown) => {
      reportFailure(studio, error, "errors.server");
      void refresh(studio);
    });
  }, UNDO);
  studio.cards.value = before.filter((one) => one.id !== card.id);
  if (studio.otherTrace.value === card.id) void compareWith(studio, "");
  if (studio.trace.value === card.id) void openNewest(studio);
  studio.tell(say("shell.forgotten", { name: card.name || card.text.slice(0, 40) }), () => {
    clearTimeout(timer);
    studio.cards.value = before;
  });
}

export function Runs({ studio }: { studio: Studio }) {
  const close = (): void => void (studio.dialog.value = "");
  const cards = [...studio.cards.value].sort((a, b) => (a.made < b.made ? 1 : a.made > b.made ? -1 : 0));
  return (
    <Dialog open={studio.dialog.value === "runs"} name={say("shell.runs")} onClose={close}>
      <p class="buttons">
        <FilePicker words={say("shell.open.file")} onFile={(file) => { close(); void openFile(studio, file); }} />
        <span class="pale">{say("shell.drop")}</span>
      </p>
      {cards.length === 0 ? <p>{say("shell.runs.none")}</p> : (
        <ul class="runs">{cards.map((card) => <Run key={card.id} studio={studio} card={card} close={close} />)}</ul>
      )}
      <Toasts studio={studio} />
    </Dialog>
  );
}

function Run({ studio, card, close }: { studio: Studio; card: TraceCard; close: () => void }) {
  const [naming, setNaming] = useState(false);
  const here = card.id === studio.trace.value;
  const rename = (name: string): void => {
    setNaming(false);
    if (name.trim() === "" || name === card.name) return;
    studio.cards.value = studio.cards.value.map((one) => (one.id === card.id ? { ...one, name: name.trim() } : one));
    studio.host.server!.rename(card.id, name.trim()).catch((error: unknown) => {
      reportFailure(studio, error, "errors.server");
      void refresh(studio);
    });
  };
  const compare = (): void => {
    close();
    void compareWith(studio, card.id).then(() => studio.choice.pick({ view: "compare" }));
  };
  return (
    <li aria-current={here}>
      {naming ? (
        <input
          class="naming" aria-label={say("shell.rename")} maxLength={120} defaultValue={card.name}
          ref={(input) => { if (input && input.ownerDocument.activeElement !== input) input.focus(); }}
          onBlur={(event) => rename(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.isComposing) rename(event.currentTarget.value);
            if (event.key !== "Escape") return;
            event.stopPropagation();
            event.preventDefault();
            setNaming(false);
          }}
        />
      ) : (
        <button type="button" class="open" onClick={() => { close(); void openTrace(studio, card.id); }}>
          <bdi class="cut"><b>{(card.name || card.text || card.id).slice(0, 120)}</b></bdi>
          <bdi class="cut pale">{card.text.slice(0, 160)}</bdi>
          <span class="pale">{`${card.model} · ${formatTime(card.made, language.value)}`}</span>
        </button>
      )}
      <span class="buttons">
        <button type="button" class="quiet" onClick={() => setNaming(true)}>{say("shell.rename")}</button>
        {!here && <button type="button" class="quiet" onClick={compare}>{say("view.compare")}</button>}
        <button type="button" class="quiet" onClick={() => deleteRun(studio, card)}>{say("shell.forget")}</button>
      </span>
    </li>
  );
}
