/** A trace as one HTML file: the numbers stand in the page, the browser computes, nothing is fetched. */
import type { Address, Host, Named } from "../shell/host";
import { sentenceOf } from "../language/errorText";
import { type Language, language, preferred, say } from "../language/language";
import { mount } from "../shell/mount";
import { type More, TraceError, openHeld } from "../trace/local/source";
import { unpacked } from "../trace/local/unpack";
import type { Source, Tokens, TraceInfo } from "../trace/source";
import { addressBar } from "./browser";

const FORMAT = 1;

/** One trace of the page, as Python wrote it beside the numbers. */
interface Told extends More {
  readonly bytes: number; // of the file
  readonly packed: number; // characters of it in the page
  readonly sampled: number; // rows of every head that the error was measured on; 0: all of them
  readonly tokens?: Readonly<Record<string, Pick<Tokens, "shown" | "text">>>; // those that no file can hold
}

interface About {
  readonly format: number;
  readonly language: Language | null;
  readonly first: string; // the address to begin at
  readonly traces: readonly Told[];
}

/** Starts the studio over what the page holds; where it cannot, the page says why. */
export async function page(): Promise<void> {
  const root = document.getElementById("regard") ?? document.body.appendChild(document.createElement("div"));
  language.value = preferred(globalThis.navigator.languages);
  try {
    const about = aboutOf(document);
    if (about.language) language.value = about.language;
    const data = [...document.querySelectorAll("script.trace")].map((one) => one.textContent ?? "");
    const named = await opened(about, data);
    root.replaceChildren();
    mount(root, hostOf(about, named));
  } catch (error) {
    const told = document.createElement("p");
    told.id = "wait";
    told.setAttribute("role", "alert");
    told.textContent = !(error instanceof TraceError) ? say("page.failed", { why: String(error) })
      : error.code === "" ? error.message : say("errors.open", { why: sentenceOf(error) });
    root.replaceChildren(told);
  }
}

/** What the page says of itself. */
export function aboutOf(where: Document): About {
  const text = where.getElementById("about")?.textContent ?? "";
  if (text === "") throw new TraceError(say("page.empty"));
  let about: About;
  try {
    about = JSON.parse(text) as About;
  } catch {
    throw new TraceError(say("page.cut"));
  }
  if (about.format > FORMAT) throw new TraceError(say("page.newer"));
  return about;
}

/** The traces of the page, in order. */
export async function opened(about: About, data: readonly string[]): Promise<readonly Named[]> {
  if (about.traces.length === 0) throw new TraceError(say("page.empty"));
  const found: Named[] = [];
  for (const [i, told] of about.traces.entries()) {
    if (data[i]?.length !== told.packed) throw new TraceError(say("page.cut"));
    const bytes = await unpacked(data[i], told.bytes);
    const source = whole(openHeld(bytes, told), told);
    found.push({ name: source.info.name || source.info.model, source });
  }
  return found;
}

/** The source with the tokens that the file could not hold: half a surrogate pair is text here. */
function whole(source: Source, { tokens }: Told): Source {
  if (!tokens) return source;
  const shown = source.info.tokens.map((one, i): Tokens => ({ ...one, ...tokens[String(i)] }));
  const info: TraceInfo = { ...source.info, tokens: shown };
  return Object.assign(source, { info });
}

function hostOf(about: About, named: readonly Named[]): Host {
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

/** The address bar, where it may be written to; an address that says nothing begins where the page does. */
function startingAt(first: string): Address {
  return {
    read: () => addressBar.read() || first,
    write: (hash, push) => {
      try {
        addressBar.write(hash, push);
      } catch {
        // a page inside another one may not write its address; nothing else is lost
      }
    },
    listen: addressBar.listen,
  };
}
