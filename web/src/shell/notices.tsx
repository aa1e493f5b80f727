/** What is shown when there is nothing to show, when something failed, and short words that go by themselves. */
import { useEffect } from "preact/hooks";
import { say } from "../language/language";
import { openFile } from "./openTrace";
import { FilePicker } from "./filePicker";
import type { Studio } from "./state";

const SHORT = 4000, UNDO = 6000; // milliseconds

/** Nothing is open: what to do. */
export function Empty({ studio }: { studio: Studio }) {
  const waiting = !studio.started.value || studio.opening.value || studio.running.value.active;
  const { server } = studio.host;
  const able = studio.models.value.length > 0;
  return (
    <main class="empty">
      {waiting ? <p role="status" aria-busy="true">{say("shell.opening")}</p> : (
        <>
          <h1>{say("shell.empty")}</h1>
          <p>{say(server === null ? "shell.empty.held" : able ? "shell.empty.run" : "shell.empty.served")}</p>
          <FilePicker words={say("shell.open.file")} onFile={(file) => void openFile(studio, file)} />
        </>
      )}
    </main>
  );
}

/** What went wrong and what to do; and a trace that holds nothing. */
export function Notices({ studio }: { studio: Studio }) {
  const notice = studio.notice.value;
  const source = studio.source.value;
  const isEmpty = source !== null && !source.info.layers.some((layer) => layer.shape.every((size) => size > 0));
  return (
    <>
      {notice !== null && (
        <div class="notice" data-kind={notice.kind} role="alert">
          <bdi>{notice.text}</bdi>
          <span class="buttons">
            {notice.again && <button type="button" onClick={notice.again}>{say("shell.again")}</button>}
            <button
              type="button" class="quiet" aria-label={say("shell.close")} title={say("shell.close")}
              onClick={() => (studio.notice.value = null)}
            >
              ×
            </button>
          </span>
        </div>
      )}
      {isEmpty && <div class="notice" data-kind="told" role="status">{say("errors.noAttention")}</div>}
    </>
  );
}

export function Toasts({ studio }: { studio: Studio }) {
  const toast = studio.toast.value;
  useEffect(() => {
    if (toast === null) return undefined;
    const timer = setTimeout(() => (studio.toast.value = null), toast.undo ? UNDO : SHORT);
    return () => clearTimeout(timer);
  }, [toast]);
  const undo = (): void => {
    toast?.undo?.();
    studio.toast.value = null;
  };
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toast && (
        <div class="toast">
          <bdi>{toast.text}</bdi>
          {toast.undo && <button type="button" onClick={undo}>{say("shell.undo")}</button>}
        </div>
      )}
    </div>
  );
}
