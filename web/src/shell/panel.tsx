/** Details: the cell in hand, its row, the proof of its layer, and what is known of the trace. */
import { useEffect, useState } from "preact/hooks";
import { attentionOf } from "../choose/move";
import { type Proof, type Row, type Tokens, type TraceInfo, tokensOf } from "../trace/source";
import { fewDigits } from "../paint/digits";
import { shortenText } from "../paint/text";
import { entropyOf, placeIn, strongest } from "../trace/rowFacts";
import { tokenName } from "../views/parts/names";
import { incompleteWords, mapKindWords, proofWords } from "../views/parts/proofWords";
import { errorText, isAbort } from "../language/errorText";
import { say } from "../language/language";
import { type FocusedCell, focusedCell, useRow } from "./focusedCell";
import { shownSource } from "./shownSource";
import type { Studio } from "./state";
import { attentionWords } from "./tabs";

const STRONGEST = 8;

export function Panel({ studio }: { studio: Studio }) {
  const hand = focusedCell(studio);
  const row = useRow(hand);
  const { info } = hand.source;
  if (shownSource(studio) === null)
    return <aside class="panel" aria-label={say("shell.panel")}><p class="pale">{say("shell.panel.hint")}</p></aside>;
  const queries = tokensOf(info, hand.layer, hand.batch, "queries");
  const keys = tokensOf(info, hand.layer, hand.batch, "keys");
  return (
    <aside class="panel" aria-label={say("shell.panel")}>
      {hand.query === null && hand.key === null ? <p class="pale">{say("shell.panel.hint")}</p> : (
        <>
          <h2 class="cell-name">
            {hand.query !== null &&
              <bdi class="query" title={tokenName(queries, hand.query, 400)}>{tokenName(queries, hand.query)}</bdi>}
            {hand.key !== null && <span class="pale" aria-label={say("shell.to")}>{" → "}</span>}
            {hand.key !== null &&
              <bdi class="key" title={tokenName(keys, hand.key, 400)}>{tokenName(keys, hand.key)}</bdi>}
          </h2>
          {hand.query !== null && <RowFacts studio={studio} hand={hand} row={row} keys={keys} />}
        </>
      )}
      <LayerFacts hand={hand} />
      <TraceFacts studio={studio} info={info} />
    </aside>
  );
}

function RowFacts(
  { studio, hand, row, keys }: { studio: Studio; hand: FocusedCell; row: Row | null; keys: Tokens | null },
) {
  if (row === null) return <p class="pale" aria-busy="true">{say("shell.asking")}</p>;
  const at = hand.key === null ? null : placeIn(row, hand.key);
  const best = strongest(row, STRONGEST);
  const nats = entropyOf(row);
  return (
    <>
      {at !== null && (
        <dl>
          <dt>{say("weight")}</dt>
          <dd class="number" title={String(at.weight)}>{at.allowed ? fewDigits(at.weight) : say("shell.blocked")}</dd>
          <dt>{say("score")}</dt>
          <dd class="number" title={String(at.score ?? "")}>
            {at.score === null ? say("shell.unknown") : fewDigits(at.score)}
          </dd>
          {at.allowed &&
            <><dt>{say("rank")}</dt><dd class="number">{say("shell.rank", { rank: at.rank, of: at.of })}</dd></>}
        </dl>
      )}
      <h3>{say("shell.row")}</h3>
      {best.length === 0 ? <p class="pale">{say("shell.row.blind")}</p> : (
        <ol class="strongest">
          {best.map(({ key, weight }) => (
            <li key={key}>
              <button
                type="button" aria-pressed={key === hand.key}
                onClick={() => studio.choice.pick({ layer: hand.layer, head: hand.head, query: hand.query, key })}
              >
                <bdi class="key cut" title={tokenName(keys, key, 400)}>{tokenName(keys, key)}</bdi>
                <span class="measure"><i style={{ width: `${Math.min(100, 100 * weight)}%` }} /></span>
                <span class="number" title={String(weight)}>{fewDigits(weight)}</span>
              </button>
            </li>
          ))}
        </ol>
      )}
      <dl>
        <dt>{say("shell.entropy")}</dt>
        <dd class="number" title={`${nats} nat`}>{say("shell.bits", { bits: fewDigits(nats / Math.LN2) })}</dd>
      </dl>
    </>
  );
}

function LayerFacts({ hand }: { hand: FocusedCell }) {
  const layer = hand.source.info.layers[hand.layer];
  const proof = useProof(hand);
  if (layer === undefined) return null;
  const [, heads, queries, keys] = layer.shape, missed = incompleteWords(hand.source.info.missed, say);
  return (
    <section>
      <h3>{say("shell.layer.head", { layer: hand.layer, head: hand.head })}</h3>
      <p class="path"><bdi>{layer.name.slice(0, 200)}</bdi></p>
      <dl>
        <dt>{say("shell.kind")}</dt><dd>{attentionWords(attentionOf(layer))}</dd>
        <dt>{say("shell.size")}</dt>
        <dd class="number">{say(heads === 1 ? "shell.shape.one" : "shell.shape", { heads, queries, keys })}</dd>
        <dt>{say("shell.how")}</dt><dd>{mapKindWords(layer.how, say)}</dd>
        <dt>{say("shell.proof")}</dt>
        <dd data-proof={typeof proof === "object" ? proof?.status : ""}>
          <bdi>{proof === null ? say("shell.asking") : typeof proof === "string" ? proof : proofWords(proof, say)}</bdi>
        </dd>
        {missed !== "" && <><dt>{say("shell.complete")}</dt><dd data-proof="incomplete"><bdi>{missed}</bdi></dd></>}
      </dl>
      <Notes notes={layer.notes} />
    </section>
  );
}

/** The proof of the layer in hand; a sentence where it could not be had, null while it is on its way. */
function useProof({ source, layer }: FocusedCell): Proof | string | null {
  const [found, setFound] = useState<{ source: object; layer: number; proof: Proof | string } | null>(null);
  useEffect(() => {
    const end = new AbortController();
    const timer = setTimeout(() => {
      const set = (proof: Proof | string): void => void (end.signal.aborted || setFound({ source, layer, proof }));
      source.proof(layer, end.signal).then(set, (error: unknown) => !isAbort(error) && set(errorText(error)));
    }, 200); // proving may be work: the view's numbers go first
    return () => {
      clearTimeout(timer);
      end.abort();
    };
  }, [source, layer]);
  return found !== null && found.source === source && found.layer === layer ? found.proof : null;
}

function TraceFacts({ studio, info }: { studio: Studio; info: TraceInfo }) {
  const { output } = info;
  const precision = info.error === null ? info.precision
    : info.error === 0 ? say("shell.precision.exact", { precision: info.precision })
    : say("shell.precision.error", { precision: info.precision, error: fewDigits(info.error) });
  const chances = output?.next ?? output?.masked ?? output?.classes ?? null, { edits } = info;
  const heading = say(output?.next ? "shell.next" : output?.masked ? "shell.masked" : "shell.classes");
  return (
    <section>
      {output !== null && (output.text || chances) && (
        <>
          <h3>{output.text ? say("shell.output") : heading}</h3>
          {output.text && <p class="said"><bdi>{output.text.slice(0, 1000)}</bdi></p>}
          {output.text && chances && <h3>{heading}</h3>}
          {chances && (
            <ol class="strongest">
              {chances.slice(0, STRONGEST).map((one, i) => (
                <li key={i} class="chance">
                  <bdi class="cut">{shortenText(one.name, 40)}</bdi>
                  <span class="measure"><i style={{ width: `${Math.min(100, 100 * one.share)}%` }} /></span>
                  <span class="number" title={String(one.share)}>{fewDigits(one.share)}</span>
                </li>
              ))}
            </ol>
          )}
        </>
      )}
      <h3>{say("shell.trace")}</h3>
      <dl>
        <dt>{say("shell.model")}</dt><dd><bdi>{info.model.slice(0, 120)}</bdi></dd>
        <dt>{say("shell.precision")}</dt>
        <dd>{precision}</dd>
      </dl>
      {edits.length > 0 && <h3>{say("shell.edits")}</h3>}
      <Notes notes={edits} />
      {studio.host.note && <p class="pale">{studio.host.note}</p>}
      <Notes notes={info.notes} />
    </section>
  );
}

const Notes = ({ notes }: { notes: readonly string[] }) => notes.length === 0 ? null : (
  <ul class="notes">{notes.slice(0, 20).map((note, i) => <li key={i}><bdi>{note.slice(0, 400)}</bdi></li>)}</ul>
);
