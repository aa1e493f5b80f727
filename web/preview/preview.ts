/** One view alone over a fake source, to look at while it is being made: ?view=map&n=12&causal=1&dark=1&zh=1&layers=3&heads=4&broken=1 */
import { Choice, FIRST, type ViewName } from "../src/choose/choice";
import { DARK, LIGHT } from "../src/paint/theme";
import { language, say } from "../src/language/language";
import type { View } from "../src/views/parts/view";
import { fake } from "../test/fake";

const ask = new URLSearchParams(location.search);
const number = (name: string, usual: number): number => Number(ask.get(name) ?? usual);
const name = (ask.get("view") ?? "map") as ViewName;
const sample = "The quick brown fox jumps over the lazy dog . 猫 坐 在 垫子 上 。 مرحبا 👩‍👩‍👧 [CLS] internationalisation".split(" ");
const words = Array.from({ length: number("n", 12) }, (_, i) => sample[i % sample.length]!);
if (ask.has("zh")) language.value = "zh";
const theme = ask.has("dark") ? DARK : LIGHT;
document.body.style.background = theme.ground;
document.body.style.color = theme.ink;

const views = import.meta.glob<Record<string, View>>("../src/views/*/*.ts");
const loaded = await views[`../src/views/${name}/${name}.ts`]!();
const el = document.querySelector<HTMLElement>("#view")!;
const choice = new Choice({ ...FIRST, view: name, query: ask.has("query") ? number("query", 0) : null, key: ask.has("key") ? number("key", 0) : null });
const sizes = { layers: number("layers", 3), heads: number("heads", 4), causal: ask.has("causal"), padded: number("padded", 0) };
const source = fake(words, sizes);
if (ask.has("broken")) source.tile = () => Promise.reject(new Error("the numbers of this map are gone; run it again"));
const shown = loaded[name]!({
  el, source, other: null, choice, say, theme: () => theme, server: null, signal: new AbortController().signal,
});
Object.assign(window, { choice, shown });
