/** The studio over a server: runs, live tokens, failures, lost connections, deleting and renaming. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type FakeServer, fakeServer } from "../../preview/fakes";
import { language } from "../../src/language/language";
import { mount } from "../../src/shell/mount";
import { trainings } from "../views/numbers.fakes";

const wait = (time = 30): Promise<void> => new Promise((done) => setTimeout(done, time));
const until = async (true_: () => boolean, most = 4000): Promise<void> => {
  for (let time = 0; !true_() && time < most; time += 20) await wait(20);
  expect(true_()).toBe(true);
};
let leave: () => void = () => undefined;
let hash = "";

async function studio(server: FakeServer = fakeServer()) {
  const root = document.body.appendChild(document.createElement("div"));
  leave = mount(root, {
    source: null, server, address: { read: () => hash, write: (next) => { hash = next; }, listen: () => undefined },
  });
  const find = (what: string): HTMLElement => root.querySelector<HTMLElement>(what)!;
  const type = (text: string): void => {
    const area = find("textarea") as HTMLTextAreaElement;
    area.value = text;
    area.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const choose = (model: string): void => {
    const select = find(".compose select") as HTMLSelectElement;
    select.value = model;
    select.dispatchEvent(new Event("change", { bubbles: true }));
  };
  const run = (): void => void find("form").dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
  await wait(80);
  return { root, server, find, all: (what: string) => [...root.querySelectorAll<HTMLElement>(what)], type, choose,
    run };
}

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
  language.value = "en";
  hash = "";
});
afterEach(() => {
  leave();
  document.body.replaceChildren();
  vi.restoreAllMocks();
});

describe("a served studio", () => {
  it("opens the newest trace, with its text in the field", async () => {
    const { find } = await studio();
    expect(hash).toContain("trace=a1");
    expect((find("textarea") as HTMLTextAreaElement).value).toBe("The cat sat on the mat");
    expect(find(".bar .current").textContent).toContain("The cat sat on the mat");
  });

  it("opens what the link names, and says so where that is gone", async () => {
    hash = "#/trace=b2&view=map&layer=0&head=1";
    const first = await studio();
    expect(first.find(".bar .current").textContent).toContain("dog");
    leave();
    hash = "#/trace=gone&layer=3";
    const second = await studio();
    expect(second.find(".notice").textContent).toContain("there is no trace gone");
    expect(hash).toBe("#/trace=a1&view=map&layer=0&head=0");
  });

  it("runs the translator's example where nothing is kept yet", async () => {
    const server = fakeServer();
    const cards = await server.traces();
    for (const card of cards) await server.forget(card.id);
    await studio(server);
    await until(() => hash.includes("trace=r1"));
  });

  it("shows progress at once, then tokens and a map that grows, and keeps the run", async () => {
    const { find, all, choose, type, run } = await studio();
    choose("induction");
    await wait();
    expect(all(".compose input[type=number]").length).toBe(2);
    (all(".compose input[type=number]")[0] as HTMLInputElement).value = "3";
    all(".compose input[type=number]")[0]!.dispatchEvent(new Event("change", { bubbles: true }));
    type("A B C");
    await wait();
    run();
    await wait(40); // well below a tenth of a second
    expect(find(".progress").textContent).toContain("loading induction");
    await until(() => all(".progress .chip").length >= 2);
    await until(() => find(".panel")?.textContent?.includes("5 × 5") === true);
    await until(() => find(".progress") === null);
    await until(() => find(".panel").textContent!.includes("6 × 6"));
    expect((find("textarea") as HTMLTextAreaElement).value).toBe("A B C");
    expect(hash).toContain("trace=r1");
  });

  it("can be stopped, and keeps what had come", async () => {
    const { find, all, choose, run } = await studio();
    choose("induction");
    await wait();
    run();
    await until(() => all(".progress .chip").length >= 1);
    find(".compose .strong").click();
    await until(() => find(".progress") === null);
    expect(find(".toast").textContent).toContain("Stopped");
    expect(hash).toContain("trace=r1");
  });

  it("says why a run failed and loses nothing that was typed", async () => {
    const { find, type, run } = await studio();
    const long = "word ".repeat(120);
    type(long);
    run();
    await until(() => find(".notice") !== null);
    expect(find(".notice").textContent).toContain("the model takes 400: shorten it.");
    expect((find("textarea") as HTMLTextAreaElement).value).toBe(long);
    expect(sessionStorage.getItem("regard.text")).toBe(long);
    type("");
    run();
    await wait();
    expect(find(".notice").textContent).toContain("Type a text first");
  });

  it("tells a lost connection, keeps what is shown, and goes on when it is back", async () => {
    const { find, server, type, run } = await studio();
    server.broken = true;
    type("not lost");
    run();
    await until(() => find(".notice[data-kind=lost]") !== null);
    expect(find(".view")).not.toBeNull();
    server.broken = false;
    find(".notice button").click();
    await until(() => find(".notice") === null);
    expect((find("textarea") as HTMLTextAreaElement).value).toBe("not lost");
  });

  it("lists runs; deleting can be undone, and only then is forgotten", async () => {
    const { find, all, server } = await studio();
    find(".bar .current").click();
    await wait();
    expect(all(".runs li").map((one) => one.querySelector("b")!.textContent)).toEqual([
      "The cat sat on the mat", "The dog sat on the mat", "</script><img src=x onerror=alert(1)>",
    ]);
    const remove = (): void =>
      [...all(".runs li")[1]!.querySelectorAll("button")].find((one) => one.textContent === "Delete")!.click();
    remove();
    await wait();
    expect(all(".runs li").length).toBe(2);
    find("dialog .toast button").click();
    await wait();
    expect(all(".runs li").length).toBe(3);
    expect(server.asked.filter((one) => one.startsWith("forget"))).toEqual([]);
  });

  it("tells of the map that the training view shows, not of the open trace", async () => {
    hash = "#/trace=a1&view=training&layer=1&head=2";
    const { trainings: listed, openTraining } = trainings(["x", "y", "z"]);
    const { root, find, all } = await studio(Object.assign(fakeServer(), { trainings: listed, openTraining }));
    await until(() => find(".panel").textContent!.includes("layers.1.attention"));
    expect(find(".panel").textContent).toContain("3 heads, 3 × 3");
    expect(find(".panel").textContent).not.toContain("en-zh");
    expect(all(".grid .heads").length).toBe(2);
    expect(hash).toContain("layer=1&head=2");
    [...root.querySelectorAll<HTMLElement>("[role=tab]")].find((one) => one.textContent === "Map")!.click();
    await until(() => find(".panel").textContent!.includes("en-zh"));
    expect(all(".grid .heads").length).toBeGreaterThan(0);
  });

  it("leaves the training view for the map of a run that somebody asks for", async () => {
    hash = "#/trace=a1&view=training&layer=0&head=0";
    const { find, choose, type, run } = await studio();
    await until(() => find("[data-view=training]") !== null);
    choose("induction");
    type("A B C");
    await wait();
    run();
    await until(() => hash.includes("trace=r1"));
    expect(hash).toContain("view=map");
  });

  it("tells nothing beside a training that has no map", async () => {
    hash = "#/trace=a1&view=training&layer=0&head=0";
    const { find } = await studio();
    await until(() => find("[data-view=training]").textContent!.includes("No training run"));
    expect(find(".panel").textContent).not.toContain("en-zh");
  });

  it("renames a run", async () => {
    const { find, all, server } = await studio();
    find(".bar .current").click();
    await wait();
    [...all(".runs li")[0]!.querySelectorAll("button")].find((one) => one.textContent === "Rename")!.click();
    await wait();
    const field = find(".naming") as HTMLInputElement;
    field.value = "猫 <b>";
    field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
    await wait();
    expect(all(".runs li b")[0]!.textContent).toBe("猫 <b>");
    expect((await server.traces())[0]!.name).toBe("猫 <b>");
  });

  it("says what a newer file needs", async () => {
    const { find, all } = await studio();
    find(".bar .current").click();
    await wait();
    const input = all("dialog input[type=file]")[0] as HTMLInputElement;
    Object.defineProperty(input, "files", { value: [new File(["x"], "new.trace")] });
    input.dispatchEvent(new Event("change", { bubbles: true }));
    await until(() => find(".notice") !== null);
    expect(find(".notice").textContent).toContain("install a newer regard");
  });
});
