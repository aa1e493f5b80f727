/** The foot: how it is drawn, and how to take it along. */
import type { DrawSettings } from "../choose/choice";
import { fewDigits } from "../paint/digits";
import { currentView } from "./availableViews";
import { withEditCaption } from "./editedNotice";
import { errorText } from "../language/errorText";
import { language, say } from "../language/language";
import { focusedCell, useRow } from "./focusedCell";
import { shownSource, shownOrOpenSource } from "./shownSource";
import type { Studio } from "./state";
import { copyText, toCsv, fileName, toPng, saveFile } from "./export";
import { placeIn } from "../trace/rowFacts";
import { VIEW } from "../views";
import { tokenName } from "../views/parts/names";
import { tokensOf } from "../trace/source";

export function Foot({ studio }: { studio: Studio }) {
  const drawn = studio.choice.drawn.value;
  const controls = VIEW[currentView(studio)].controls ?? [];
  return (
    <footer class="foot">
      <div class="drawn">
        {controls.includes("scale") && (
          <ChoiceSelect
            words={say("shell.scale")} now={drawn.scale} all={["linear", "log", "rank"]}
            name={(scale) => say(`scale.${scale}`)} pick={(scale) => studio.choice.draw({ scale })}
          />
        )}
        {controls.includes("pool") && (
          <ChoiceSelect
            words={say("shell.pool")} now={drawn.pool} all={["max", "mean"]} name={(pool) => say(`pool.${pool}`)}
            pick={(pool) => studio.choice.draw({ pool })}
          />
        )}
        <Readout studio={studio} />
      </div>
      <ExportMenu studio={studio} />
    </footer>
  );
}

function ChoiceSelect<T extends DrawSettings["scale"] | DrawSettings["pool"]>({ words, now, all, name, pick }: {
  words: string; now: T; all: readonly T[]; name: (one: T) => string; pick: (one: T) => void;
}) {
  return (
    <label>
      <span class="words">{words} </span>
      <select aria-label={words} title={words} value={now} onChange={(event) => pick(event.currentTarget.value as T)}>
        {all.map((one) => <option key={one} value={one}>{name(one)}</option>)}
      </select>
    </label>
  );
}

/** The cell in hand in one line, where the details are folded away. */
function Readout({ studio }: { studio: Studio }) {
  const hand = focusedCell(studio);
  const row = useRow(hand);
  const { info } = hand.source;
  if (hand.query === null || hand.key === null || shownSource(studio) === null) return null;
  const at = row === null ? null : placeIn(row, hand.key);
  return (
    <span class="readout">
      <bdi class="query">{tokenName(tokensOf(info, hand.layer, hand.batch, "queries"), hand.query, 16)}</bdi>
      {" → "}
      <bdi class="key">{tokenName(tokensOf(info, hand.layer, hand.batch, "keys"), hand.key, 16)}</bdi>{" "}
      <b>{at === null ? "…" : at.allowed ? fewDigits(at.weight) : say("shell.blocked")}</b>
    </span>
  );
}

/** The link to what is seen now; what the server's first address carried beside it is left out. */
export const linkTo = (href: string, hash: string): string =>
  `${href.split(/[?#]/)[0]}${hash.startsWith("#") ? hash : `#${hash}`}`;

function ExportMenu({ studio }: { studio: Studio }) {
  const { svg, table } = studio.exports.value;
  const { server, address, notebook } = studio.host;
  const { info } = studio.source.value!;
  const name = (ending: string): string => {
    const seen = shownOrOpenSource(studio).info;
    return fileName(`${seen.name || seen.model}-${currentView(studio)}`, ending);
  };
  const doing = (work: () => Promise<unknown>) => () => {
    work().catch((error: unknown) => studio.tell(say("errors.take", { why: errorText(error) })));
  };
  const picture = async (): Promise<string> => {
    if (svg === undefined) throw new Error(say("errors.nothing"));
    return withEditCaption(studio, await svg());
  };
  const page = async (): Promise<void> => {
    if (server === null || studio.localTraces.value.some((one) => one.source === studio.source.value))
      return studio.tell(say(notebook ? "shell.page.notebook" : "shell.page.here"));
    studio.tell(say("shell.page.writing"));
    saveFile(await server.page(studio.trace.value), fileName(info.name || info.model, "html"));
    studio.toast.value = null;
  };
  const link = async (): Promise<void> => {
    const text = linkTo(location.href, address?.read() ?? "");
    studio.tell((await copyText(text)) ? say("shell.copied") : say("shell.copy.by.hand", { link: text }));
  };
  return (
    <div class="take" role="group" aria-label={say("shell.take")} lang={language.value}>
      <button
        type="button" disabled={svg === undefined} title={say("shell.take.svg")}
        onClick={doing(async () => saveFile(new Blob([await picture()], { type: "image/svg+xml" }), name("svg")))}
      >
        SVG
      </button>
      <button
        type="button" disabled={svg === undefined} title={say("shell.take.png")}
        onClick={doing(async () => saveFile(await toPng(await picture(), studio.look.theme.value.ground), name("png")))}
      >
        PNG
      </button>
      <button
        type="button" disabled={table === undefined} title={say("shell.take.csv")}
        onClick={doing(async () => saveFile(new Blob([toCsv(await table!())], { type: "text/csv" }), name("csv")))}
      >
        CSV
      </button>
      <button type="button" title={say("shell.take.page")} onClick={doing(page)}>{say("shell.page")}</button>
      {address !== null && !notebook &&
        <button type="button" title={say("shell.take.link")} onClick={doing(link)}>{say("shell.link")}</button>}
    </div>
  );
}
