import { afterEach, describe, expect, it } from "vitest";
import { fakeServer } from "../../preview/fakes";
import { Choice, FIRST } from "../../src/choose/choice";
import type { EditSpec } from "../../src/trace/messages";
import { LIGHT } from "../../src/paint/theme";
import { say } from "../../src/language/language";
import { edit } from "../../src/views/edit/edit";
import { diffTexts, shifts } from "../../src/views/edit/diff";
import { isBlocked, mutedHeads, firstChangedLayer, toggleBlock, toggleHead, toggleLayer } from "../../src/views/edit/edits";
import { fake } from "../fake";

const wait = (time = 30): Promise<void> => new Promise((done) => setTimeout(done, time));
const ends: AbortController[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end.abort();
  document.body.replaceChildren();
});

async function shown(words: readonly string[] = ["The", "cat", "sat"],
  server = fakeServer() as ReturnType<typeof fakeServer> | null,
  source = fake(words, { layers: 2, heads: 3 }, { id: "a1" })) {
  const el = document.body.appendChild(document.createElement("div")), end = new AbortController();
  ends.push(end);
  const choice = new Choice({ ...FIRST, view: "edit", layer: 1, head: 2, query: 1 });
  const found = edit({ el, source, other: null, choice, say, theme: () => LIGHT, server, signal: end.signal });
  await wait();
  const probe = (el as unknown as { regard: { edits: () => EditSpec[] } }).regard;
  return { el, choice, found, probe, server, source, end,
    all: (what: string) => [...el.querySelectorAll<HTMLElement>(what)] };
}

describe("lists of edits", () => {
  it("mute heads one by one and whole layers, one edit per layer", () => {
    let edits: EditSpec[] = [];
    edits = toggleHead(edits, 3, 2, 4);
    edits = toggleHead(edits, 1, 0, 4);
    edits = toggleHead(edits, 3, 0, 4);
    expect(edits).toEqual([
      { kind: "mute", layer: 1, heads: [0], query: null, key: null, factor: null },
        { kind: "mute", layer: 3, heads: [0, 2], query: null, key: null, factor: null },
    ]);
    expect(toggleHead(toggleHead(edits, 3, 0, 4), 3, 2, 4)).toEqual([edits[0]]);
    expect([...mutedHeads(toggleLayer(edits, 3, 4), 3, 4)]).toEqual([0, 1, 2, 3]);
    expect(mutedHeads(toggleLayer(toggleLayer(edits, 3, 4), 3, 4), 3, 4).size).toBe(0);
  });
  it("block a glance in a head, a layer, or many layers, and take it back", () => {
    const one = toggleBlock([], [2], [1], 5, 7);
    expect([isBlocked(one, 2, 1, 5, 7), isBlocked(one, 2, 0, 5, 7), isBlocked(one, 2, 1, 7, 5)]).toEqual([true, false,
      false]);
    const many = toggleBlock(one, [0, 2], null, 5, 7);
    expect(many.length).toBe(3);
    expect(isBlocked(many, 0, 9, 5, 7)).toBe(true);
    expect(toggleBlock(many, [0, 2], null, 5, 7)).toEqual(one);
  });
});

describe("where an edit shows", () => {
  it("is after a muted head, at a blocked glance, and never beyond the last layer", () => {
    const mute = toggleHead([], 1, 0, 4), block = toggleBlock([], [2], null, 0, 1);
    expect([firstChangedLayer(mute, 0, 5), firstChangedLayer(mute, 1, 5), firstChangedLayer(mute, 3, 5), firstChangedLayer(mute, 0, 2)]).toEqual([2, 2, 3, 1]);
    expect([firstChangedLayer(block, 0, 5), firstChangedLayer([...block, ...mute], 0, 5), firstChangedLayer([], 0, 5)]).toEqual([2, 2, 0]);
  });
});

describe("differences", () => {
  it("are marked where texts part, and the parts give the texts back", () => {
    const [left, right] = diffTexts("猫坐在垫子上。", "狗坐在垫子上面。");
    expect(left.filter((part) => part.changed).map((part) => part.text)).toEqual(["猫"]);
    expect(right.filter((part) => part.changed).map((part) => part.text)).toEqual(["狗", "面"]);
    for (const [a, b] of [["", ""], ["a b", ""], ["the cat sat", "a cat sat down"], ["x".repeat(50), "y\n<b>"],
      ["a ".repeat(2000), "b"]] as const) {
      const both = diffTexts(a, b);
      expect(both.map((parts) => parts.map((part) => part.text).join(""))).toEqual([a, b]);
    }
    expect(diffTexts("the same", "the same").flat().some((part) => part.changed)).toBe(false);
  });
  it("list each name once, the strongest first", () => {
    expect(shifts([{ name: "a", share: 0.5 }, { name: "b", share: 0.1 }],
      [{ name: "c", share: 0.7 }, { name: "a", share: 0.2 }])).toEqual([
      { name: "c", before: null, after: 0.7 }, { name: "a", before: 0.5, after: 0.2 },
        { name: "b", before: 0.1, after: null },
    ]);
  });
});

describe("the edit view", () => {
  it("says that it needs a model where there is none", async () => {
    const { el } = await shown(["a", "b"], null);
    expect(el.querySelector("[role=alert]")!.textContent).toContain("regard serve");
  });

  it("mutes by a click, lists chips that take it back, and stays while the trace is open", async () => {
    const { all, probe, source, end } = await shown();
    all(".mute")[4]!.click();
    expect(all(".mute")[4]!.getAttribute("aria-pressed")).toBe("true");
    expect(probe.edits()).toEqual([{ kind: "mute", layer: 1, heads: [1], query: null, key: null, factor: null }]);
    expect(all(".edits .chip")[0]!.textContent).toBe("layer 1, head 1 muted ×");
    end.abort();
    const again = await shown(undefined, undefined, source);
    expect(again.probe.edits().length).toBe(1);
    again.all(".edits .chip")[0]!.click();
    expect(again.probe.edits()).toEqual([]);
  });

  it("blocks a glance of the picked row, runs again, and tells before from after", async () => {
    const { all, probe, el, server, found } = await shown();
    let wish: unknown = null;
    el.addEventListener("regard:compare", (event) => (wish = (event as CustomEvent).detail));
    all(".block-row button")[0]!.click();
    const [block] = probe.edits();
    expect(block).toMatchObject({ kind: "block", layer: 1, heads: [2], query: 1 });
    all("button.strong")[0]!.click();
    await wait();
    expect(el.querySelector("[role=status]")!.textContent).toContain("Running");
    await wait(300);
    expect(server!.asked.at(-1)).toBe(`edit a1 ${JSON.stringify([block])}`);
    expect(all("mark").map((one) => one.textContent)).toEqual(["猫", "狗", "面"]);
    expect(all(".effect tbody tr").map((row) => row.children[3]!.textContent)).toEqual(["−0.692", "+0.559", "–", "–"]);
    expect(all(".turned").length).toBe(2);
    expect(el.textContent).toContain("KL(before ‖ after) = 0.734 nat");
    expect((await found.table!())[1]).toEqual(["猫", 0.912, 0.22]);
    all(".result button")[0]!.click();
    expect(wish).toEqual({ trace: "a1-edited" });
    all(".mute")[0]!.click();
    expect(el.textContent).toContain("The edits have changed since this run.");
  });

  it("says why an edited run failed and can be tried again", async () => {
    const server = fakeServer();
    server.edit = async () => {
      throw new Error("the model is gone; load it again");
    };
    const { all, el } = await shown(undefined, server);
    all(".mute")[0]!.click();
    all("button.strong")[0]!.click();
    await wait();
    const told = el.querySelector("[role=status]")!.textContent;
    expect(told).toBe("The edited run failed: the model is gone; load it again");
    expect((all("button.strong")[0] as HTMLButtonElement).disabled).toBe(false);
  });

  it("shows hostile tokens as themselves", async () => {
    const { el, all } = await shown(["</script>", "<img src=x onerror=alert(1)>", "\u202Egnp", "x".repeat(10_000)]);
    expect(all("img, script").length).toBe(0);
    all(".block-row button")[0]!.click();
    expect(el.textContent).toContain("<img src=x onerror=ale");
    expect(el.textContent!.length).toBeLessThan(3000);
    expect(el.textContent).not.toContain("\u202E");
  });
});
