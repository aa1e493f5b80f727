/** A text, a model and a button; while it runs: how far it is, what it has written, and a way to stop. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { shortenText } from "../paint/text";
import { say } from "../language/language";
import { FilePicker } from "./filePicker";
import { remember } from "./remember";
import { chosenModel, runTyped, stopRun } from "./running";
import type { Studio } from "./state";
import { takePicture } from "./takePicture";

const CHIPS = 80; // tokens that stay in sight; the map holds them all

export function Compose({ studio }: { studio: Studio }) {
  const { draft, running } = studio;
  const field = useRef<HTMLTextAreaElement>(null);
  const model = chosenModel(studio);
  const { text } = draft.value;
  useLayoutEffect(() => {
    const area = field.current;
    if (area === null) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight + 2, 132)}px`; // grows with what is typed, then scrolls
  }, [text]);
  const type = (typed: string): void => {
    studio.write({ text: typed, typed: true });
    remember("text", typed, "session");
  };
  const enter = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    runTyped(studio);
  };
  const choose = (name: string): void => {
    const chosen = studio.models.value.find((one) => one.name === name);
    const { typed, text: now } = draft.value;
    studio.write({ model: name, text: (!typed || now === "") && chosen?.example ? chosen.example : now });
  };
  return (
    <form class="compose" onSubmit={(event) => { event.preventDefault(); runTyped(studio); }}>
      <select
        aria-label={say("shell.model")} title={model?.about ?? say("shell.model")} value={model?.name ?? ""}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        {studio.models.value.length === 0 && <option value="">{say("shell.model.none")}</option>}
        {studio.models.value.map((one) => <option key={one.name} value={one.name}>{one.name}</option>)}
      </select>
      <textarea
        ref={field} data-text rows={1} dir="auto" spellcheck={false}
        aria-label={say("shell.text")} placeholder={model?.example || say("shell.text")}
        value={text} onInput={(event) => type(event.currentTarget.value)} onKeyDown={enter}
      />
      {model?.reads === "picture" && <Picture studio={studio} />}
      {model?.tasks.includes("generate") && <Writing studio={studio} />}
      {running.value.active
        ? <button type="button" class="strong" onClick={() => stopRun(studio)}>{say("shell.stop")}</button>
        : <button type="submit" class="strong" disabled={model === null}>{say("shell.run")}</button>}
    </form>
  );
}

/** How much a model writes, and how boldly. */
function Writing({ studio }: { studio: Studio }) {
  const { steps, temperature } = studio.draft.value;
  const number = (text: string, least: number, most: number): number =>
    Math.min(most, Math.max(least, Number(text) || 0));
  return (
    <>
      <label class="small" title={say("shell.steps.title")}>
        {say("shell.steps")}{" "}
        <input
          type="number" min={1} max={512} value={steps}
          onChange={(event) => studio.write({ steps: Math.round(number(event.currentTarget.value, 1, 512)) })}
        />
      </label>
      <label class="small" title={say("shell.temperature.title")}>
        {say("shell.temperature")}{" "}
        <input
          type="number" min={0} max={2} step={0.1} value={temperature}
          onChange={(event) => studio.write({ temperature: number(event.currentTarget.value, 0, 2) })}
        />
      </label>
    </>
  );
}

/** A picture for a model that sees. */
function Picture({ studio }: { studio: Studio }) {
  const { picture } = studio.draft.value;
  return (
    <>
      {picture !== null && <img class="sample" src={picture} alt={say("shell.picture")} />}
      <FilePicker words={say("shell.picture")} accept="image/*" onFile={(file) => takePicture(studio, file)} />
    </>
  );
}

/** How far a run is. It stands there from the moment the button is pressed. */
export function Progress({ studio }: { studio: Studio }) {
  const { active, words, share, tokens } = studio.running.value;
  if (!active) return null;
  return (
    <div class="progress" role="status">
      {share === null ? <progress aria-label={words} /> : <progress aria-label={words} max={1} value={share} />}
      <span>{words}</span>
      {tokens.length > 0 && (
        <span class="chips" aria-hidden="true">
          {tokens.slice(-CHIPS).map((token, i) =>
            <bdi key={Math.max(0, tokens.length - CHIPS) + i} class="chip">{shortenText(token, 24)}</bdi>)}
        </span>
      )}
    </div>
  );
}
