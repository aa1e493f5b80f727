/** How it is looked at, and which attention: two rows of tabs in one line. */
import { useEffect, useRef } from "preact/hooks";
import { attentionOf } from "../choose/move";
import type { ViewName } from "../choose/choice";
import { availableViews, currentView, keyOf } from "./availableViews";
import { LANGUAGES, type Key, say } from "../language/language";
import { shownOrOpenSource } from "./shownSource";
import type { Studio } from "./state";

export function Tabs({ studio }: { studio: Studio }) {
  const toggle = (which: "side" | "panel"): void => {
    studio.drawer.value = studio.drawer.value === which ? "" : which;
  };
  const { layer, head } = studio.choice.picked.value;
  return (
    <nav class="tabs">
      <button
        type="button" class="quiet drawer-button" aria-expanded={studio.drawer.value === "side"}
        aria-label={say("shell.side.title")} title={say("shell.side.title")} onClick={() => toggle("side")}
      >
        ☰ {say("shell.side", { layer, head })}
      </button>
      <Views studio={studio} />
      <Attentions studio={studio} />
      <button
        type="button" class="quiet drawer-button" aria-expanded={studio.drawer.value === "panel"}
        onClick={() => toggle("panel")}
      >
        {say("shell.panel")}
      </button>
    </nav>
  );
}

/** Brings a tab into its row. The row alone moves: a notebook or an article around it stays where it is read. */
function showTab(row: HTMLElement, at: number): void {
  const tab = row.children[at]?.getBoundingClientRect(), seen = row.getBoundingClientRect();
  if (tab === undefined) return;
  if (tab.left < seen.left) row.scrollLeft -= seen.left - tab.left;
  else if (tab.right > seen.right) row.scrollLeft += tab.right - seen.right;
}

/** Tabs through which arrows go, as readers of screens expect. */
function Row<T extends string | number>({ name, all, now, words, title, pick }: {
  name: string; all: readonly T[]; now: T; words: (one: T) => string; title?: (one: T) => string;
  pick: (one: T) => void;
}) {
  const row = useRef<HTMLDivElement>(null);
  const key = (event: KeyboardEvent): void => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const at = event.key === "Home" ? 0 : event.key === "End" ? all.length - 1
      : (all.indexOf(now) + by + all.length) % all.length;
    if (by === 0 && event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    pick(all[at]!);
    (row.current?.children[at] as HTMLElement | undefined)?.focus();
  };
  useEffect(() => {
    if (row.current) showTab(row.current, all.indexOf(now));
  }, [now]);
  return (
    <div class="row" role="tablist" aria-label={name} ref={row} onKeyDown={key}>
      {all.map((one) => (
        <button
          key={one} type="button" role="tab" aria-selected={one === now} tabIndex={one === now ? 0 : -1}
          {...(title === undefined ? {} : { title: title(one) })} onClick={() => pick(one)}
        >{words(one)}</button>
      ))}
    </div>
  );
}

function Views({ studio }: { studio: Studio }) {
  const title = (view: ViewName): string => {
    const read = `${view}.read`, key = keyOf(view);
    const words = say(Object.hasOwn(LANGUAGES.en, read) ? (read as Key) : `view.${view}`);
    return key === "" ? words : `${words} (${key})`;
  };
  return (
    <Row<ViewName>
      name={say("shell.views")} all={availableViews(studio)} now={currentView(studio)} words={(view) => say(`view.${view}`)}
      title={title}
      pick={(view) => studio.choice.pick({ view })}
    />
  );
}

/** The words of an attention such as "self·encoder". */
export function attentionWords(attention: string): string {
  const [kind = "", side = ""] = attention.split("·");
  const name = say(kind === "self" ? "kind.self" : kind === "cross" ? "kind.cross" : "kind.unknown");
  return side === "" ? name : `${name}·${say(side === "encoder" ? "side.encoder" : "side.decoder")}`;
}

/** Which attention, where there is more than one. */
function Attentions({ studio }: { studio: Studio }) {
  const { layers } = shownOrOpenSource(studio).info;
  const picked = studio.choice.picked.value;
  const kinds = [...new Set(layers.map(attentionOf))];
  const here = layers[picked.layer];
  if (kinds.length < 2 || here === undefined) return null;
  const go = (kind: string): void => {
    const before = layers.slice(0, picked.layer).filter((layer) => attentionOf(layer) === attentionOf(here)).length;
    const there = layers.flatMap((layer, i) => (attentionOf(layer) === kind ? [i] : []));
    studio.choice.pick({ layer: there[Math.min(before, there.length - 1)] ?? picked.layer }); // as deep as we were
  };
  return (
    <>
      <Row name={say("shell.attention")} all={kinds} now={attentionOf(here)} words={attentionWords} pick={go} />
      <select
        class="narrow" aria-label={say("shell.attention")} value={attentionOf(here)}
        onChange={(event) => go(event.currentTarget.value)}
      >
        {kinds.map((kind) => <option key={kind} value={kind}>{attentionWords(kind)}</option>)}
      </select>
    </>
  );
}
