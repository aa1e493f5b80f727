/** A page opens what it holds, and says in a sentence what it cannot. */
import { beforeEach, describe, expect, it, vi } from "vitest";
import { readPageInfo, openTraces, page } from "../../src/entry/page";
import { language, say } from "../../src/language/language";
import type { Host } from "../../src/shell/host";
import { bytesOf } from "../trace/local/read";

const mounted = vi.hoisted((): Host[] => []);
const roots = vi.hoisted((): (HTMLElement | ShadowRoot)[] => []);
vi.mock("../../src/shell/mount", () => ({
  mount: (root: HTMLElement | ShadowRoot, host: Host) => {
    roots.push(root);
    mounted.push(host);
  },
}));

const packed = new TextDecoder().decode(bytesOf("pair.packed")), size = bytesOf("pair.trace").length;
const told = { bytes: size, packed: packed.length, sampled: 0, info: { id: "0", name: "cat", error: 0.25 } };
const about = { format: 1, language: null, first: "#/layer=3", traces: [told] };

function filled(said: unknown, ...data: readonly string[]): void {
  document.body.replaceChildren();
  const root = document.body.appendChild(document.createElement("div"));
  root.id = "regard";
  const put = (text: string, name: string): void => {
    const script = document.body.appendChild(document.createElement("script"));
    script.type = "application/x-regard";
    script.textContent = text;
    if (name) script.id = name;
    else script.className = "trace";
  };
  if (said !== undefined) put(typeof said === "string" ? said : JSON.stringify(said), "about");
  for (const one of data) put(one, "");
}

beforeEach(() => {
  mounted.length = 0;
  roots.length = 0;
  language.value = "en";
  globalThis.location.hash = "";
});

describe("a page that is whole", () => {
  it("opens its traces, the first one where it was told to begin", async () => {
    filled({ ...about, traces: [told, { ...told, info: { ...told.info, id: "1", name: "dog" } }] }, packed, packed);
    await page();
    const [host] = mounted as [Host];
    expect(host.source!.info).toMatchObject({ name: "cat", error: 0.25, precision: "float32" });
    expect(host.sources!.map(({ name }) => name)).toEqual(["cat", "dog"]);
    expect([host.server, host.address!.read()]).toEqual([null, "#/layer=3"]);
    expect((await host.source!.row({ layer: 0, batch: 0, head: 0 }, 0)).weights.length).toBe(4);
  });

  it("fills the page where it is all of it, and a shadow root where it is a part", async () => {
    filled(about, packed);
    await page();
    filled(about, packed);
    document.getElementById("regard")!.dataset["part"] = "";
    await page();
    expect(roots[0]).not.toBeInstanceOf(ShadowRoot);
    expect((roots[1] as ShadowRoot).host.id).toBe("regard");
  });

  it("leaves links to headings alone", async () => {
    filled(about, packed);
    await page();
    const { address } = mounted[0]!, heard = vi.fn(), gone = new AbortController();
    address!.listen(heard, gone.signal);
    const go = (hash: string): void => {
      globalThis.location.hash = hash;
      globalThis.dispatchEvent(new Event("hashchange"));
    };
    go("#summary");
    expect([address!.read(), heard.mock.calls.length]).toEqual(["#/layer=3", 0]);
    go("#/see&trace=0&layer=1");
    expect(address!.read()).toBe("#/see&trace=0&layer=1");
    expect(heard).toHaveBeenCalled();
    gone.abort();
  });

  it("says its precision and error in the reader's language", async () => {
    filled({ ...about, traces: [{ ...told, sampled: 7 }] }, packed);
    await page();
    const [host] = mounted as [Host];
    expect(host.note).toContain("The largest error of any weight is 0.25, measured on 7 rows of every head");
    language.value = "zh";
    expect(host.note).toContain("0.25");
    expect(host.note).toContain("每个头的 7 行");
  });

  it("begins in the language it was written in, and says where nothing was rounded", async () => {
    filled({ ...about, language: "zh", traces: [{ ...told, info: { error: 0 } }] }, packed);
    await page();
    expect([language.value, mounted[0]!.language]).toEqual(["zh", "zh"]);
    expect(mounted[0]!.note).toBe(say("page.exact", { precision: "float32" }));
  });

  it("shows half a surrogate pair as it was", async () => {
    const shown = ["a\ud83d", "<script>", "c", "d"];
    const [named] = await openTraces({ ...about, traces: [{ ...told, tokens: { "0": { shown, text: null } } }] } as never, [packed]);
    expect(named!.source.info.tokens[0]!.shown).toEqual(shown);
    expect(named!.source.info.tokens[1]!.shown[1]).toBe("猫");
    expect(named!.source.info.tokens[0]!.ids).toEqual([5, 6, 7, 0]);
  });
});

describe("a page that cannot be opened says why", () => {
  it.each<[string, unknown, readonly string[], () => string]>([
    ["no data at all", undefined, [], () => say("page.empty")],
    ["no trace", { ...about, traces: [] }, [], () => say("page.empty")],
    ["its words are cut", JSON.stringify(about).slice(0, 40), [], () => say("page.cut")],
    ["its numbers are missing", about, [], () => say("page.cut")],
    ["its numbers are cut", about, [packed.slice(0, 5000)], () => say("page.cut")],
    ["it is newer", { ...about, format: 2 }, [packed], () => say("page.newer")],
    ["its numbers are damaged", { ...about, traces: [{ ...told, packed: 8 }] }, ["AAAAAAAA"], () => "cut off or damaged; get the file again"],
  ])("%s", async (_, said, data, sentence) => {
    filled(said, ...data);
    await page();
    expect(mounted).toEqual([]);
    const alert = document.querySelector("[role=alert]")!;
    expect(alert.textContent).toContain(sentence());
    expect(alert.children.length).toBe(0);
  });

  it("and what a stranger wrote is text", () => {
    filled('{"format": "<img src=x onerror=alert(1)>"');
    expect(() => readPageInfo(document)).toThrow(say("page.cut"));
  });
});
