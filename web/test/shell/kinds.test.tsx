/** What a model reads, writes and can do decides what the studio offers; the name of its kind decides nothing. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FakeServer, fakeServer } from "../../preview/fakes";
import { language } from "../../src/language/language";
import { mount } from "../../src/shell/mount";
import type { ModelInfo, RunRequest } from "../../src/trace/messages";

const NEW: readonly ModelInfo[] = [
  { name: "little", about: "reads and says a number", reads: "text", writes: null, tasks: ["read"], example: "the cat" },
  { name: "teller", about: "goes on", reads: "text", writes: "text", tasks: ["generate", "read"], example: "once" },
  { name: "eyes", about: "looks", reads: "picture", writes: null, tasks: ["see"], example: "" },
];

const wait = (time = 40): Promise<void> => new Promise((done) => setTimeout(done, time));
let leave: () => void = () => undefined;

async function studio(models: readonly ModelInfo[] = NEW) {
  const requests: RunRequest[] = [];
  const known = fakeServer();
  const server: FakeServer = {
    ...known, models: async () => models,
    run: async (request, hear, signal) => {
      requests.push(request);
      await known.run(request, hear, signal);
    },
  };
  const root = document.body.appendChild(document.createElement("div"));
  leave = mount(root, { source: null, server, address: null });
  await wait(80);
  const all = (what: string): HTMLElement[] => [...root.querySelectorAll<HTMLElement>(what)];
  const choose = async (name: string): Promise<void> => {
    const select = root.querySelector<HTMLSelectElement>(".compose select")!;
    select.value = name;
    select.dispatchEvent(new Event("change", { bubbles: true }));
    await wait();
  };
  const run = async (): Promise<void> => {
    root.querySelector("form")!.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
    await wait();
  };
  return { all, choose, run, requests, server };
}

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
  language.value = "en";
});
afterEach(() => {
  leave();
  document.body.replaceChildren();
});

describe("a kind of model that the explorer has never heard of", () => {
  it("is offered with the others", async () => {
    const { all } = await studio();
    expect(all(".compose option").map((option) => option.textContent)).toEqual(["little", "teller", "eyes"]);
  });

  it("is not the one that runs what is typed, if it looks at pictures and another model reads", async () => {
    const { all } = await studio([NEW[2]!, NEW[1]!]);
    expect((all(".compose select")[0] as HTMLSelectElement).value).toBe("teller");
  });

  it.each([["little", 0, 0], ["teller", 2, 0], ["eyes", 0, 1]] as const)(
    "gets the controls of what it reads and writes: %s", async (name, numbers, pictures) => {
      const { all, choose } = await studio();
      await choose(name);
      expect(all(".compose input[type=number]").length).toBe(numbers);
      expect(all(".compose input[type=file]").length).toBe(pictures);
    });

  it("writes only where it can go on with a text", async () => {
    const { choose, run, requests } = await studio();
    await choose("little");
    await run();
    await choose("teller");
    await run();
    expect(requests.map(({ model, steps }) => [model, steps > 0])).toEqual([["little", false], ["teller", true]]);
  });

  it("opens an empty studio with a model that reads one text and writes another", async () => {
    const pair: ModelInfo = { ...NEW[0]!, name: "two", reads: "pair", writes: "text", tasks: ["translate"] };
    const server = fakeServer();
    for (const card of await server.traces()) await server.forget(card.id);
    const requests: string[] = [];
    const root = document.body.appendChild(document.createElement("div"));
    leave = mount(root, {
      source: null, address: null,
      server: { ...server, models: async () => [...NEW, pair], run: async ({ model }) => void requests.push(model) },
    });
    await wait(120);
    expect(requests).toEqual(["two"]);
  });
});
