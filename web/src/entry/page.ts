/** A trace as one HTML file: the numbers stand in the page, the browser computes, nothing is fetched. */
import type { Address, Host, NamedSource } from "../shell/host";
import { errorText } from "../language/errorText";
import { type Language, language, preferredLanguage, say } from "../language/language";
import { mount } from "../shell/mount";
import { type KnownOfTrace, TraceError, openLocalSource } from "../trace/local/source";
import { unpack } from "../trace/local/unpack";
import type { Source, Tokens, TraceInfo } from "../trace/source";
import { addressBar } from "./browser";

const FORMAT = 1;

/** One trace of the page, as Python wrote it beside the numbers. */
interface PageTrace extends KnownOfTrace {
  readonly bytes: number; // of the file
  readonly packed: number; // characters of it in the page
  readonly sampled: number; // rows of every head that the error was measured on; 0: all of them
  readonly tokens?: Readonly<Record<string, Pick<Tokens, "shown" | "text">>>; // those that no file can hold
}

interface PageInfo {
  readonly format: number;
  readonly language: Language | null;
  readonly first: string; // the address to begin at
  readonly traces: readonly PageTrace[];
}

/** Starts the studio over what the page holds; where it cannot, the page says why. */
export async function page(): Promise<void> {
  const root = document.getElementById("regard") ?? document.body.appendChild(document.createElement("div"));
  language.value = preferredLanguage(globalThis.navigator.languages);
  try {
    const about = readPageInfo(document);
    if (about.language) language.value = about.language;
    const data = [...document.querySelectorAll("script.trace")].map((one) => one.textContent ?? "");
    const named = await openTraces(about, data);
    root.replaceChildren();
    // Below a text of its own the explorer is a part of the page: a shadow root keeps styles apart, and keys inside.
    mount(root.dataset["part"] === undefined ? root : root.attachShadow({ mode: "open" }), hostOf(about, named));
  } catch (error) {
    const message = document.createElement("p");
    message.id = "wait";
    message.setAttribute("role", "alert");
    message.textContent = !(error instanceof TraceError) ? say("page.failed", { why: String(error) })
      : error.code === "" ? error.message : say("errors.open", { why: errorText(error) });
    root.replaceChildren(message);
  }
}

/** Whether an address says something of the explorer, as `#/layer=2` does and a heading, `#summary`, does not. */
const isOurs = (hash: string): boolean => hash.includes("=");

/** What the page says of itself. */
export function readPageInfo(where: Document): PageInfo {
  const text = where.getElementById("about")?.textContent ?? "";
  if (text === "") throw new TraceError(say("page.empty"));
  let about: PageInfo;
  try {
    about = JSON.parse(text) as PageInfo;
  } catch {
    throw new TraceError(say("page.cut"));
  }
  if (about.format > FORMAT) throw new TraceError(say("page.newer"));
  return about;
}

/** The traces of the page, in order. */
export async function openTraces(about: PageInfo, data: readonly string[]): Promise<readonly NamedSource[]> {
  if (about.traces.length === 0) throw new TraceError(say("page.empty"));
  const sources: NamedSource[] = [];
  for (const [i, told] of about.traces.entries()) {
    if (data[i]?.length !== told.packed) throw new TraceError(say("page.cut"));
    const bytes = await unpack(data[i], told.bytes);
    const source = withTokens(openLocalSource(bytes, told), told);
    sources.push({ name: source.info.name || source.info.model, source });
  }
  return sources;
}

/** The source with the tokens that the file could not hold: half a surrogate pair is text here. */
function withTokens(source: Source, { tokens }: PageTrace): Source {
  if (!tokens) return source;
  const shown = source.info.tokens.map((one, i): Tokens => ({ ...one, ...tokens[String(i)] }));
  const info: TraceInfo = { ...source.info, tokens: shown };
  return Object.assign(source, { info });
}

function hostOf(about: PageInfo, named: readonly NamedSource[]): Host {
  const { source } = named[0]!;
  const rows = Math.max(...about.traces.map((told) => told.sampled));
  const error = Math.max(...named.map((one) => one.source.info.error ?? 0));
  return {
    source, sources: named, server: null, address: startingAt(about.first),
    ...(about.language && { language: about.language }),
    get note() { // read while drawing, so that it follows the language
      const precision = source.info.precision;
      if (error === 0) return say("page.exact", { precision });
      return say(rows ? "page.sampled" : "page.rounded", { precision, error: error.toPrecision(2), rows });
    },
  };
}

/**
 * The address bar, where it may be written to; an address that says nothing begins where the page does. Links to
 * headings of the text around us are not ours.
 */
function startingAt(first: string): Address {
  return {
    read: () => (isOurs(addressBar.read()) ? addressBar.read() : first),
    write: (hash, push) => {
      try {
        addressBar.write(hash, push);
      } catch {
        // a page inside another one may not write its address; nothing else is lost
      }
    },
    listen: (heard, signal) => addressBar.listen(() => isOurs(addressBar.read()) && heard(), signal),
  };
}
