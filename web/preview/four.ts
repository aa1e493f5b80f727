/**
 * The views that need more than one plain trace: ?view=compare&n=12&m=12,
 * ?view=image&rows=7&columns=9&special=1&cross=1&picture=1, ?view=training, ?view=numbers&d=64&bias=1&softcap=1&sink=1&stored=1&kernel=1. &dark=1&zh=1 as everywhere.
 */
import { Choice, FIRST, type ViewName } from "../src/choose/choice";
import { DARK, LIGHT } from "../src/paint/theme";
import { language, say } from "../src/language/language";
import type { View } from "../src/views/parts/view";
import { fake } from "../test/fake";
import { crossing, dressed, pictured, trainings } from "../test/views/numbers.fakes";

const ask = new URLSearchParams(location.search);
const number = (name: string, usual: number): number => Number(ask.get(name) ?? usual);
const name = (ask.get("view") ?? "compare") as ViewName;
const sample =
  "The quick brown fox jumps over the lazy dog . 猫 坐 在 垫子 上 。 مرحبا 👩‍👩‍👧 [CLS] internationalisation".split(" ");
const words = (n: number): string[] => Array.from({ length: n }, (_, i) => sample[i % sample.length]!);
if (ask.has("zh")) language.value = "zh";
const theme = ask.has("dark") ? DARK : LIGHT;
document.body.style.background = theme.ground;

/** A picture that is made here: no file, no network. */
function picture(): { address: string; width: number; height: number } {
  const canvas = document.createElement("canvas");
  canvas.width = 360;
  canvas.height = 280;
  const pen = canvas.getContext("2d")!;
  const sky = pen.createLinearGradient(0, 0, 0, 280);
  sky.addColorStop(0, "#9cc9f0");
  sky.addColorStop(1, "#e9d8b0");
  pen.fillStyle = sky;
  pen.fillRect(0, 0, 360, 280);
  pen.fillStyle = "#c0392b";
  pen.beginPath();
  pen.arc(240, 90, 50, 0, 7);
  pen.fill();
  pen.fillStyle = "#2d6a4f";
  pen.fillRect(40, 150, 120, 90);
  return { address: canvas.toDataURL(), width: 360, height: 280 };
}

const sizes = { layers: number("layers", 3), heads: number("heads", 4), causal: ask.has("causal"), d: number("d", 5) };
const source =
  name === "image"
    ? ask.has("cross")
      ? crossing(
        words(number("n", 8)), [number("rows", 7), number("columns", 9)], ask.has("picture") ? picture() : null,
      )
      : pictured([number("rows", 7), number("columns", 9)], number("special", 1), ask.has("picture") ? picture() : null)
    : name === "numbers"
      ? dressed(
        fake(words(number("n", 12)), sizes),
        {
          bias: ask.has("bias"), softcap: ask.has("softcap"), sink: ask.has("sink"), stored: ask.has("stored"),
          kernel: ask.has("kernel"), values: !ask.has("novalues"),
        },
      )
      : fake(words(number("n", 12)), sizes);
const other = name === "compare" && !ask.has("alone") ? fake(
  words(number("m", number("n", 12))).reverse(), { ...sizes, d: sizes.d + 1 }, { name: "second", model: "Other" },
) : null;
const views = import.meta.glob<Record<string, View>>("../src/views/*/*.ts");
const loaded = await views[`../src/views/${name}/${name}.ts`]!();
const el = document.querySelector<HTMLElement>("#view")!;
const choice = new Choice(
  {
    ...FIRST, view: name, query: ask.has("query") ? number("query", 0) : null,
    key: ask.has("key") ? number("key", 0) : null,
  }
);
const server = name === "training" && !ask.has("alone") ? trainings(words(number("n", 12))) : null;
const shown = loaded[name]!(
  { el, source, other, choice, say, theme: () => theme, server, signal: new AbortController().signal }
);
Object.assign(window, { choice, shown });
