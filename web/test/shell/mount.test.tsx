import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { fakeServer, translation } from "../../preview/fakes";
import { language } from "../../src/language/language";
import type { Address, Host } from "../../src/shell/host";
import { mount } from "../../src/shell/mount";
import type { Source } from "../../src/trace/source";
import { fake } from "../fake";

const wait = (time = 30): Promise<void> => new Promise((done) => setTimeout(done, time));
const realAdd = EventTarget.prototype.addEventListener, realRemove = EventTarget.prototype.removeEventListener;
const leaving: (() => void)[] = [];

/** An address bar with its own history. */
function bar(hash = ""): Address & { all: string[]; go: (hash: string) => void; readonly pushed: number } {
  const all = [hash];
  let heard: () => void = () => undefined, pushed = 0;
  return {
    all,
    get pushed() { return pushed; },
    read: () => all.at(-1)!,
    write: (next, push) => {
      if (push) pushed++;
      if (push) all.push(next);
      else all[all.length - 1] = next;
    },
    listen: (hear, signal) => {
      heard = hear;
      signal.addEventListener("abort", () => (heard = () => undefined));
    },
    go: (next) => {
      all.push(next);
      heard();
    },
  };
}

async function studio(part: Partial<Host> = {}, time = 60): Promise<{ root: HTMLElement; leave: () => void;
  find: (what: string) => HTMLElement; all: (what: string) => HTMLElement[] }> {
  const root = document.body.appendChild(document.createElement("div"));
  const leave = mount(root, { source: fake(["The", "cat", "sat", "here"]), server: null, address: null, ...part });
  leaving.push(leave);
  await wait(time);
  return { root, leave, find: (what) => root.querySelector<HTMLElement>(what)!,
    all: (what) => [...root.querySelectorAll<HTMLElement>(what)] };
}
const press = (key: string, more: object = {}): void =>
  void document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, ...more }));

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
  language.value = "en";
});
afterEach(() => {
  for (const leave of leaving.splice(0)) leave();
  document.body.replaceChildren();
});

describe("a studio", () => {
  it("stands with names and roles for everything", async () => {
    const { all, find } = await studio();
    expect(all("[role=tablist]").length).toBe(1);
    expect(find("[role=tab][aria-selected=true]").textContent).toBe("Map");
    expect(find("[role=tabpanel]").getAttribute("aria-label")).toBe("Map");
    expect(all("button").filter((one) => !one.closest(".view") &&
      !(one.getAttribute("aria-label") ?? one.textContent)?.trim())).toEqual([]);
    expect(all("select, textarea, input:not([hidden])").filter((one) => !one.closest("label") &&
      !one.getAttribute("aria-label") && !one.closest(".view"))).toEqual([]);
    expect(all("[aria-live=polite]").length).toBeGreaterThan(0);
    expect(all(".side .cell").length).toBeGreaterThanOrEqual(4); // layers in sight
  });

  it("speaks the other language at once and remembers it", async () => {
    const first = await studio();
    first.all(".ends button")[0]!.click();
    await wait();
    expect(first.find("[role=tab]").textContent).toBe("注意力图");
    expect(document.documentElement.lang).toBe("zh-Hans");
    first.leave();
    language.value = "en";
    const second = await studio();
    expect(second.find("[role=tab]").textContent).toBe("注意力图");
  });

  it("turns light and dark and sets the colours on its own element", async () => {
    const { all, find } = await studio();
    const element = find(".regard");
    all(".ends button")[1]!.click();
    all(".ends button")[1]!.click();
    await wait();
    expect(element.dataset["theme"]).toBe("dark");
    expect(element.style.getPropertyValue("--ground")).toBe("#12161d");
    expect(localStorage.getItem("regard.theme")).toBe("dark");
  });

  it("works where storage is denied", async () => {
    const denied = vi.spyOn(globalThis, "localStorage", "get").mockImplementation(() => {
      throw new DOMException("denied", "SecurityError");
    });
    const { all, find } = await studio();
    all(".ends button")[0]!.click();
    await wait();
    expect(find("[role=tab]").textContent).toBe("注意力图");
    denied.mockRestore();
  });

  it("leaves nothing that listens, in a page and in a shadow root", async () => {
    const open: { target: EventTarget; type: string; how: AddEventListenerOptions | undefined; hear: unknown }[] = [];
    const add =
      vi.spyOn(EventTarget.prototype,
      "addEventListener").mockImplementation(function (this: EventTarget, type, hear, how) {
      if (this === document ||
        this === globalThis) open.push({ target: this, type, how: typeof how === "object" ? how : undefined, hear });
      return realAdd.call(this, type, hear, how);
    });
    const remove =
      vi.spyOn(EventTarget.prototype,
      "removeEventListener").mockImplementation(function (this: EventTarget, type, hear, how) {
      const at = open.findIndex((one) => one.target === this && one.type === type && one.hear === hear);
      if (at >= 0) open.splice(at, 1);
      return realRemove.call(this, type, hear, how);
    });
    const sheets = document.adoptedStyleSheets?.length ?? 0;
    const { leave, root } = await studio({ address: bar() });
    const host = document.body.appendChild(document.createElement("div"));
    const shadow = host.attachShadow({ mode: "open" });
    const second = mount(shadow, { source: fake(["a", "b"]), server: null, address: null });
    await wait(60);
    expect(shadow.querySelector("[role=tab]")).not.toBeNull();
    leave();
    second();
    second();
    await wait(60);
    expect(open.filter((one) => one.how?.signal?.aborted !== true).map((one) => one.type)).toEqual([]);
    expect([root.childElementCount, shadow.childElementCount]).toEqual([0, 0]);
    expect(document.adoptedStyleSheets?.length ?? 0).toBe(sheets);
    add.mockRestore();
    remove.mockRestore();
  });
});

describe("the selection", () => {
  it("comes from the address, clamped, and goes back into it", async () => {
    const address = bar("#/view=heads&layer=99&head=2&q=1&k=77&zoom=9,9,20,20");
    const { find } = await studio({ address });
    expect(find("[role=tab][aria-selected=true]").textContent).toBe("Heads");
    expect(address.read()).toBe("#/view=heads&layer=2&head=2&q=1");
    expect(address.pushed).toBe(0);
  });

  it("moves by keys, pushes what one would go back to, and follows back", async () => {
    const address = bar("#/view=map&layer=0&head=0");
    const { all, find } = await studio({ address });
    press("]");
    expect(address.read()).toContain("head=1");
    expect(address.pushed).toBe(1);
    press("ArrowDown");
    press("ArrowRight");
    await wait(260);
    expect(address.read()).toBe("#/view=map&layer=0&head=1&q=0&k=0");
    expect(address.pushed).toBe(1);
    await wait(150);
    press("}");
    expect(address.pushed).toBe(2);
    expect(find(".side [aria-pressed=true]").getAttribute("aria-label")).toBe("Layer 0, head 1"); // not yet drawn
    await wait();
    expect(find(".side [aria-pressed=true]").getAttribute("aria-label")).toBe("Layer 1, head 1");
    address.go("#/view=model&layer=0&head=3");
    await wait();
    expect(find("[role=tab][aria-selected=true]").textContent).toBe("Model");
    expect(address.pushed).toBe(2);
    press("Escape");
    press("2");
    await wait();
    expect(all("[role=tab]")[1]!.getAttribute("aria-selected")).toBe("true");
  });

  it("lists heads by a measure, the largest first, says so, and turns the order at a click", async () => {
    const { find, all } = await studio({ address: bar("#/sort=sink") }, 300);
    const values = (): number[] => all(".ranking .value").map((one) => Number(one.getAttribute("title")));
    const sorted = (sign: number): number[] => [...values()].sort((a, b) => sign * (a - b));
    expect(values().length).toBeGreaterThan(3);
    expect(new Set(values()).size).toBeGreaterThan(1);
    expect(values()).toEqual(sorted(-1));
    const turn = find(".side .sort button");
    expect(turn.textContent).toContain("Largest first");
    turn.click();
    await wait();
    expect(values()).toEqual(sorted(1));
    expect(turn.textContent).toContain("Smallest first");
  });

  it("says above every view that the model was edited, and how; and nothing where it was not", async () => {
    const plain = fake(["The", "cat", "sat"]);
    const info = { ...plain.info, edits: ["mute('a', heads 1)", "<b>block</b>(key 0)"] };
    const source = Object.assign(Object.create(plain) as Source, { info });
    const { find, all } = await studio({ source });
    for (const view of ["Map", "Heads", "Model", "Numbers", "Flow", "Edit", "Compare"]) {
      all("[role=tab]").find((one) => one.textContent === view)!.click();
      await wait();
      expect(find(".stage").getAttribute("aria-label")).toBe(view);
      expect(find(".stage .edited").textContent).toBe(
        "The model was edited: mute('a', heads 1), <b>block</b>(key 0)");
    }
    expect(find(".panel").textContent).toContain("Edits");
    expect((await studio()).find(".stage .edited")).toBeNull();
  });

  it("says beside the proof of every layer which attention was not recorded; and nothing where all was", async () => {
    const plain = fake(["The", "cat", "sat"]);
    const missed = ["layers.1.mixer", "<b>head</b>", "c", "d", "e", "f", "g", "h"];
    const source = Object.assign(Object.create(plain) as Source, { info: { ...plain.info, missed } });
    const { find } = await studio({ source });
    expect(find(".panel [data-proof=incomplete]").textContent).toBe(
      "incomplete: attention in layers.1.mixer, <b>head</b>, c, d, e, f and 2 more ran, but was not recorded");
    expect((await studio()).find(".panel [data-proof=incomplete]")).toBeNull();
  });

  it("says of a comparison which side was edited, and writes it below pictures", async () => {
    const plain = fake(["The", "cat", "sat"]);
    const info = { ...plain.info, edits: ["swap(window(1, 1))"] };
    const source = Object.assign(Object.create(plain) as Source, { info });
    const { find } = await studio({ source: plain, sources: [{ name: "a", source: plain }, { name: "b", source }],
      address: bar("#/view=compare&with=held-2") }, 120);
    expect(find(".stage .edited").textContent).toBe("B: The model was edited: swap(window(1, 1))");
    const made: Blob[] = [];
    vi.stubGlobal("URL", Object.assign(URL, { createObjectURL: (blob: Blob) => (made.push(blob), "blob:x") }));
    find(".take button").click();
    await wait(60);
    const file = new DOMParser().parseFromString(await made[0]!.text(), "image/svg+xml");
    const lines = [...file.querySelectorAll("text")].map((one) => one.textContent);
    expect(lines.join(" ")).toContain("B: The model was edited: swap(window(1, 1))");
    vi.unstubAllGlobals();
  });

  it("says the pinned row as a sentence and shows its numbers", async () => {
    const source = fake(["The", "cat", "sat", "here"]);
    const { find } = await studio({ source, address: bar("#/view=map&layer=1&head=2&q=1&k=3") });
    await wait(400);
    const weights = source.weightsOf({ layer: 1, batch: 0, head: 2 }, 1);
    const best = weights.indexOf(Math.max(...weights));
    const first = `cat attends to ${["The", "cat", "sat", "here"][best]} ${Math.round(100 * weights[best]!)} %`;
    expect(find(".unseen[role=status]").textContent!.startsWith(first)).toBe(true);
    expect(Number(find(".panel dd.number").title)).toBeCloseTo(weights[3]!, 6);
    expect(find(".panel [data-proof]").textContent).toBe("verified: equals the model's output to 0.5 ulp (6e-8)");
  });

  it.each([["next", "Next token"], ["masked", "Masked token"], ["classes", "Classes"]])(
    "heads what the model predicts by what it is: %s", async (what, heading) => {
      const output = { text: null, next: null, classes: null, [what]: [{ name: "dog", share: 0.75 }] };
      const source = fake(["The", "[MASK]", "sat"]);
      Object.assign(source.info, { output });
      const { find } = await studio({ source });
      const list = find(".panel .strongest");
      expect(list.previousElementSibling!.textContent).toBe(heading);
      expect(list.textContent).toBe("dog0.750");
    },
  );

  it("does not fire shortcuts while somebody types", async () => {
    const address = bar();
    const { find } = await studio({ source: null, server: fakeServer(), address });
    await wait(60);
    const before = address.read();
    find("textarea").dispatchEvent(new KeyboardEvent("keydown", { key: "2", bubbles: true, composed: true }));
    find("textarea").dispatchEvent(new KeyboardEvent("keydown", { key: "]", bubbles: true, composed: true }));
    await wait(250);
    expect(address.read()).toBe(before);
  });
});

describe("help", () => {
  it("opens on ?, closes on Escape, gives the focus back, and keeps other keys out", async () => {
    const { root, find } = await studio();
    const button = find(".take button:not(:disabled)");
    button.focus();
    press("?");
    await wait();
    const dialog = root.querySelector("dialog")!;
    expect(dialog.getAttribute("aria-label")).toBe("Help");
    for (const view of ["Map", "Heads", "Model", "Numbers", "Flow", "Edit",
      "Compare"]) expect(dialog.textContent).toContain(view);
    press("2");
    expect(find("[role=tab][aria-selected=true]").textContent).toBe("Map");
    dialog.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
    await wait();
    expect(root.querySelector("dialog")).toBeNull();
    expect(document.activeElement).toBe(button);
  });
});

describe("several sources without a server", () => {
  const sources = (): { name: string; source: Source }[] => [
    { name: "cat", source: translation("a1", ["The", "cat"], ["猫", "。", "!"]) },
      { name: "</script><img src=x onerror=alert(1)>", source: fake(["x", "y", "z"], {}, { id: "b2" }) },
  ];
  it("can be chosen and compared, by link too", async () => {
    const address = bar("#/trace=b2&view=compare&layer=0&head=0&with=a1");
    const { find, all } = await studio({ source: null, sources: sources(), address });
    expect(find("select.current")).toHaveProperty("value", "b2");
    expect((find(".comparing select") as HTMLSelectElement).value).toBe("a1");
    expect(all("img").length).toBe(0);
    const select = find("select.current") as HTMLSelectElement;
    select.value = "a1";
    select.dispatchEvent(new Event("change", { bubbles: true }));
    await wait();
    expect(address.read()).toContain("trace=a1");
    expect(all("[role=tablist]").length).toBe(2); // self·enc, self·dec, cross
  });
  it("says what to do with a file that is no trace", async () => {
    const { find, all } = await studio({ source: null, sources: [] });
    expect(find(".empty").textContent).toContain("Nothing open yet");
    const input = find(".empty input") as HTMLInputElement;
    Object.defineProperty(input, "files", { value: [new File(["no trace"], "x.trace")] });
    input.dispatchEvent(new Event("change", { bubbles: true }));
    await wait(100);
    expect(all("[role=alert]").map((one) => one.textContent).join()).toMatch(/could not be read as a trace: \S+/);
  });
});
