/** All heads in the order of one measure. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Measures } from "../trace/source";
import { fewDigits } from "../paint/digits";
import { isAbort } from "../language/errorText";
import { say } from "../language/language";
import { shownOrOpenSource } from "./shownSource";
import type { Studio } from "./state";

export interface LayerMeasures {
  readonly names: readonly string[];
  readonly layers: ReadonlyMap<number, Measures>;
  readonly whole: boolean; // all layers have answered
}

/** The measures of these layers, as they arrive; nothing is asked before somebody wants an order. */
export function useMeasures(studio: Studio, layers: readonly number[], wanted: boolean): LayerMeasures {
  const source = shownOrOpenSource(studio);
  const { batch } = studio.choice.picked.value;
  const [found, setFound] = useState<ReadonlyMap<number, Measures>>(new Map());
  const which = layers.join(" ");
  useEffect(() => {
    setFound(new Map());
    if (!wanted) return undefined;
    const end = new AbortController();
    void (async () => {
      for (const layer of layers) {
        try {
          const measures = await source.measures(layer, batch, end.signal);
          if (end.signal.aborted) return;
          setFound((before) => new Map(before).set(layer, measures));
        } catch (error) {
          if (isAbort(error) || end.signal.aborted) return;
          setFound((before) => new Map(before).set(layer, { values: {}, notes: [] }));
        }
      }
    })();
    return () => end.abort();
  }, [source, which, batch, wanted]);
  const names = [...new Set([...found.values()].flatMap((measures) => Object.keys(measures.values)))];
  return { names, layers: found, whole: found.size >= layers.length };
}

const LINE = 26; // pixels

/** One line per head that has this measure; only those in sight stand in the page. */
export function Ranking({ studio, found, sort }: { studio: Studio; found: LayerMeasures; sort: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const { falling } = studio.choice.drawn.value;
  const { layer: there, head: now } = studio.choice.picked.value;
  const lines = [...found.layers].flatMap(([layer, measures]) =>
    (measures.values[sort] ?? []).flatMap((value, head) =>
      (value === null || !Number.isFinite(value) ? [] : [{ layer, head, value }])));
  lines.sort((a, b) => (falling ? b.value - a.value : a.value - b.value) || a.layer - b.layer || a.head - b.head);
  const largest = Math.max(...lines.map(({ value }) => Math.abs(value)), 1e-30);
  const first = Math.max(0, Math.floor(top / LINE) - 5);
  const last = first + Math.ceil((box.current?.clientHeight ?? 600) / LINE) + 10;
  return (
    <div
      class="grid ranking" ref={box} onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      aria-busy={!found.whole}
    >
      {lines.length === 0 && <p class="pale">{say(found.whole ? "shell.sort.empty" : "shell.asking")}</p>}
      <div style={{ height: `${lines.length * LINE}px`, position: "relative" }}>
        {lines.slice(first, last).map(({ layer, head, value }, i) => (
          <button
            key={`${layer} ${head}`} type="button" class="line" aria-pressed={layer === there && head === now}
            title={say("shell.layer.head", { layer, head })} style={{ top: `${(first + i) * LINE}px` }}
            onClick={() => { studio.choice.pick({ layer, head, heads: [] }); studio.drawer.value = ""; }}
          >
            <span>{say("shell.side", { layer, head })}</span>
            <span class="measure"><i style={{ width: `${(100 * Math.abs(value)) / largest}%` }} /></span>
            <span class="value" title={String(value)}>{fewDigits(value)}</span>
          </button>
        ))}
      </div>
    </div>
  );
}
