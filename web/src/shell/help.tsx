/** Help: the keys, and for each view one sentence and three examples. */
import { VIEWS } from "../choose/choice";
import { availableViews, keyOf } from "./availableViews";
import { Dialog } from "./dialog";
import { LANGUAGES, type Key, say } from "../language/language";
import type { Studio } from "./state";

const KEYS: readonly (readonly [readonly string[], Key])[] = [
  [["↑", "↓", "←", "→"], "help.keys.arrows"], [["[", "]"], "help.keys.heads"], [["{", "}"], "help.keys.layers"],
  [["1", "…", "9"], "help.keys.views"], [["+", "−", "0"], "help.keys.zoom"], [["/"], "help.keys.text"],
  [["?"], "help.keys.help"], [["Esc"], "help.keys.escape"],
];

export function Help({ studio }: { studio: Studio }) {
  const here = availableViews(studio);
  return (
    <Dialog open={studio.dialog.value === "help"} name={say("help.title")} onClose={() => (studio.dialog.value = "")}>
      <p>{say("help.what")}</p>
      <h2>{say("help.keys")}</h2>
      <dl class="keys">
        {KEYS.map(([keys, words]) => (
          <div key={words}>
            <dt>{keys.map((key) => (key === "…" ? " … " : <kbd key={key}>{key}</kbd>))}</dt>
            <dd>{say(words)}</dd>
          </div>
        ))}
      </dl>
      <h2>{say("help.views")}</h2>
      {VIEWS.filter((view) => here.includes(view)).map((view) => (
        <section key={view}>
          <h3>{keyOf(view) !== "" && <kbd>{keyOf(view)}</kbd>} {say(`view.${view}`)}</h3>
          {Object.hasOwn(LANGUAGES.en, `${view}.read`) && <p>{say(`${view}.read` as Key)}</p>}
          <ul>{([1, 2, 3] as const).map((n) => <li key={n}>{say(`help.${view}.${n}`)}</li>)}</ul>
        </section>
      ))}
      <h2>{say("help.words")}</h2>
      <p>{say("help.proof")}</p>
      <p>{say("help.hatched")}</p>
    </Dialog>
  );
}
