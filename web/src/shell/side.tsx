/** The side: all heads of the attention in hand, layer by layer, or in the order of a measure. */
import { sameAttention } from "../choose/move";
import { LANGUAGES, type Key, say } from "../language/language";
import { Grid } from "./grid";
import { openTrace } from "./openTrace";
import { Ranking, useMeasures } from "./ranking";
import { shownOrOpenSource } from "./shownSource";
import type { Studio } from "./state";

/** The words of a measure; its own name where it has no words. */
export const measureWords = (name: string): string =>
  Object.hasOwn(LANGUAGES.en, `measure.${name}`) ? say(`measure.${name}` as Key) : name;

const USUAL = ["entropy", "distance", "sink", "itself", "previous", "next", "duplicate", "induction"];

export function Side({ studio }: { studio: Studio }) {
  const { info } = shownOrOpenSource(studio);
  const picked = studio.choice.picked.value, drawn = studio.choice.drawn.value;
  const layers = sameAttention(info, picked.layer);
  const measures = useMeasures(studio, layers, drawn.sort !== "");
  const names = [...new Set([...USUAL, ...measures.names])];
  const batches = info.layers[picked.layer]?.shape[0] ?? 1;
  return (
    <aside class="side" aria-label={say("shell.side.title")}>
      {info.runs > 1 && info === studio.source.value!.info && (
        <NumberPicker
          words={say("shell.which.run")} count={info.runs} now={info.run}
          pick={(run) =>
            void openTrace(studio, studio.trace.value, run, { ...picked, query: null, key: null, zoom: null })}
          off={studio.host.server === null}
        />
      )}
      {batches > 1 &&
        <NumberPicker
          words={say("shell.batch")} count={batches} now={picked.batch}
          pick={(batch) => studio.choice.pick({ batch, query: null, key: null, zoom: null })}
        />}
      <h2>{say("shell.side.title")}</h2>
      {drawn.sort === "" ? <Grid studio={studio} layers={layers} />
        : <Ranking studio={studio} found={measures} sort={drawn.sort} />}
      <div class="sort">
        <label>
          {say("shell.sort")}{" "}
          <select value={drawn.sort} onChange={(event) => studio.choice.draw({ sort: event.currentTarget.value })}>
            <option value="">{say("shell.sort.none")}</option>
            {names.map((name) => <option key={name} value={name}>{measureWords(name)}</option>)}
            {drawn.sort !== "" && !names.includes(drawn.sort) && <option value={drawn.sort}>{drawn.sort}</option>}
          </select>
        </label>
        {drawn.sort !== "" && (
          <button
            type="button" title={say("shell.turn")}
            onClick={() => studio.choice.draw({ falling: !drawn.falling })}
          >
            {`${drawn.falling ? "↓" : "↑"} ${say(drawn.falling ? "shell.falling" : "shell.rising")}`}
          </button>
        )}
      </div>
    </aside>
  );
}

/** One of several: a run of the trace, an entry of the batch. */
function NumberPicker({ words, count, now, pick, off = false }: {
  words: string; count: number; now: number; pick: (at: number) => void; off?: boolean;
}) {
  const shown = Math.min(count, 500);
  return (
    <label class="numbered">
      {words}{" "}
      <select value={now} disabled={off} onChange={(event) => pick(Number(event.currentTarget.value))}>
        {Array.from({ length: shown }, (_, i) => <option key={i} value={i}>{`${i + 1} / ${count}`}</option>)}
      </select>
    </label>
  );
}
