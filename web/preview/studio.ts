/** The whole studio over fakes: ?host=browser|page|notebook|empty&n=12&layers=3&heads=4&zh=1&dark=1 */
import { mount } from "../src/shell/mount";
import { fake } from "../test/fake";
import { trainings } from "../test/views/numbers.fakes";
import { fakeServer, translation } from "./fakes";

const ask = new URLSearchParams(location.search);
const number = (name: string, usual: number): number => Number(ask.get(name) ?? usual);
const host = ask.get("host") ?? "browser";
localStorage.setItem("regard.theme", ask.has("dark") ? "dark" : "light");
localStorage.setItem("regard.language", ask.has("zh") ? "zh" : "en");
const some = "The quick brown fox jumps over the lazy dog . 猫 坐 在 垫子 上 。 مرحبا 👩‍👩‍👧 [CLS] internationalisation";
const words = Array.from({ length: number("n", 12) }, (_, i) => some.split(" ")[i % 20]!);
const sizes = { layers: number("layers", 3), heads: number("heads", 4), causal: ask.has("causal") };
const one = fake(words, sizes, { precision: "float16", error: 0.00013, notes: ["values were left out"] });
const address = {
  read: () => location.hash,
  write: (hash: string, push: boolean) =>
    (push ? history.pushState(null, "", hash) : history.replaceState(null, "", hash)),
  listen: (heard: () => void, signal: AbortSignal) => addEventListener("popstate", heard, { signal }),
};
const root = document.querySelector<HTMLElement>("#studio")!;
const learned = trainings("A cat looked at a small mat".split(" "));
const server = host === "browser"
  ? Object.assign(fakeServer(), { trainings: learned.trainings, openTraining: learned.openTraining })
  : null;
const cell = host === "notebook";
if (cell) Object.assign(root.style, { height: "560px", margin: "20px", width: "800px" });
const place = cell ? root.attachShadow({ mode: "open" }) : root;
const leave = mount(place, {
  source: server || host === "empty" ? null : one, server, address,
  ...(host === "page"
    ? { sources: [{ name: "cat", source: translation("a1", "The cat sat <eos>".split(" "), ["<s>", "猫", "坐"]) }] }
    : {}),
});
Object.assign(window, { leave, server });
