/** Chooses what is compared: another run, another source that is held, or a file. */
import { say } from "../language/language";
import { compareWith, localTraceName, openFile } from "./openTrace";
import { FilePicker } from "./filePicker";
import type { Studio } from "./state";

export function CompareWith({ studio }: { studio: Studio }) {
  const here = studio.trace.value;
  const options = [
    ...studio.cards.value.map((card) => ({ id: card.id, name: card.name || card.text, model: card.model })),
    ...studio.localTraces.value.map(({ name, source }, i) =>
      ({ id: localTraceName(studio, i), name, model: source.info.model })),
  ];
  const now = studio.otherTrace.value, other = studio.other.value;
  if (now !== "" && !options.some(({ id }) => id === now))
    options.push({ id: now, name: other?.info.name ?? now, model: other?.info.model ?? "" });
  return (
    <div class="comparing">
      <label>
        {say("shell.compare.with")}{" "}
        <select value={now} onChange={(event) => void compareWith(studio, event.currentTarget.value)}>
          <option value="">{say("shell.compare.none")}</option>
          {options.map(({ id, name, model }) => (
            <option key={id} value={id}>
              {`${name.slice(0, 60)} · ${model}${id === here ? ` (${say("shell.compare.same")})` : ""}`}
            </option>
          ))}
        </select>
      </label>
      <FilePicker words={say("shell.compare.file")} onFile={(file) => void openFile(studio, file, "compare")} />
    </div>
  );
}
