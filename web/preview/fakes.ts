/** Runs and a server that exist only here, to look at the studio and to test it. */
import type { Server } from "../src/hosts/server";
import type { EditEffect, ModelInfo, TraceCard } from "../src/trace/messages";
import type { LayerInfo, Source, TraceInfo } from "../src/trace/source";
import { Fake, type FakeLayer, fake, fakeLayers, named } from "../test/fake";

/** An encoder–decoder over two sentences: self·encoder, self·decoder, cross. */
export function translation(id: string, source: readonly string[], target: readonly string[], layers = 2, heads = 4,
  more: Partial<TraceInfo> = {}): Source {
  const there = fakeLayers(source, { layers, heads }), here = fakeLayers(target, { layers, heads, causal: true });
  const info = (layer: FakeLayer, part: Partial<LayerInfo>): LayerInfo => ({ ...layer.info, ...part });
  const encoder =
    there.map((layer, i) => ({ ...layer, info: info(layer, { name: `encoder.${i}.attention`, side: "encoder" }) }));
  const decoder = here.flatMap((layer, i) => [
    { ...layer, info: info(layer, { name: `decoder.${i}.attention`, side: "decoder", queries: [1], keys: [1] }) },
    {
      ...layer, allowed: () => true,
      heads: layer.heads.map((head, h) => ({ q: head.q, k: there[i]!.heads[h]!.k, v: there[i]!.heads[h]!.v })),
      info: info(layer, {
        name: `decoder.${i}.source_attention`, kind: "cross", side: "decoder", queries: [1], keys: [0],
        shape: [1, heads, target.length, source.length],
      }),
    },
  ]) satisfies FakeLayer[];
  return new Fake([...encoder, ...decoder], [
    named(source, { text: source.join(" "), special: source.map((word) => word.startsWith("<")) }),
    named(target, { text: target.join(""), special: target.map((word) => word.startsWith("<")) }),
  ], { id, name: source.slice(0, -1).join(" "), model: "en-zh", precision: "float32",
    output: { text: target.slice(1).join(""), next: null, classes: null }, ...more });
}

const MODELS: readonly ModelInfo[] = [
  { name: "en-zh", about: "a small translator, English to Chinese",
    reads: "pair", writes: "text", tasks: ["translate"], example: "The cat sat on the mat" },
  { name: "induction", about: "a small GPT that repeats",
    reads: "text", writes: "text", tasks: ["generate", "read"], example: "A B C D A B" },
  { name: "shapes", about: "says what it sees",
    reads: "picture", writes: null, tasks: ["see"], example: "" },
];

export interface FakeServer extends Server {
  broken: boolean; // answers nothing more
  readonly asked: string[];
}

/** A server in memory. */
export function fakeServer(): FakeServer {
  const kept = new Map<string, Source>();
  const cards: TraceCard[] = [];
  const wait = (time: number): Promise<void> => new Promise((done) => setTimeout(done, time));
  const keep = (source: Source, text: string, made: string): void => {
    kept.set(source.info.id, source);
    const at = cards.findIndex((card) => card.id === source.info.id);
    const card = { id: source.info.id, name: source.info.name, model: source.info.model, text, made };
    if (at < 0) cards.push(card);
    else cards[at] = card;
  };
  keep(translation("a1", "The cat sat on the mat <eos>".split(" "), ["<s>", "猫", "坐", "在", "垫子", "上", "。"]),
    "The cat sat on the mat", "2026-05-01T10:00:00Z");
  keep(translation("b2", "The dog sat on the mat <eos>".split(" "), ["<s>", "狗", "坐", "在", "垫子", "上", "。"]),
    "The dog sat on the mat", "2026-04-30T10:00:00Z");
  keep(fake("</script> <img src=x onerror=alert(1)> \u202Egnp.exe \u0000 👩‍👩‍👧 مرحبا internationalisation".split(" "),
    { causal: true }, { id: "c3", name: "</script><img src=x onerror=alert(1)>", model: "hostile" }), "</script>",
    "2026-04-29T10:00:00Z");
  let count = 0;
  const server: FakeServer = {
    broken: false, asked: [],
    models: async () => alive(MODELS),
    traces: async () => alive([...cards]),
    trainings: async () => [],
    open: async (id) => {
      server.asked.push(`open ${id}`);
      const source = alive(kept.get(id));
      if (source === undefined) throw new Error(`there is no trace ${id}; it may have been deleted`);
      return source;
    },
    openTraining: async () => kept.get("a1")!,
    upload: async (file) => {
      throw new Error(`${file.name} is a trace of schema 9, and this version reads up to 1: install a newer regard.`);
    },
    rename: async (id, name) => {
      const at = cards.findIndex((card) => card.id === id);
      if (at >= 0) cards[at] = { ...cards[at]!, name };
    },
    forget: async (id) => {
      server.asked.push(`forget ${id}`);
      cards.splice(cards.findIndex((card) => card.id === id), 1);
    },
    run: async (ask, heard, signal) => {
      alive(0);
      const id = `r${++count}`;
      heard({ kind: "progress", text: `loading ${ask.model}`, share: 0.2, step: "loading", name: ask.model });
      await wait(200);
      if (ask.text.length > 400) return heard({ kind: "failed",
        text: `the text has ${ask.text.length} characters, the model takes 400: shorten it.` });
      const words = ask.text.split(/\s+/).filter(Boolean);
      for (let i = 0; i < ask.steps && !signal.aborted; i++) {
        words.push("ABCD"[i % 4]!);
        heard({ kind: "token", text: words.at(-1)!, number: i + 1, of: ask.steps });
        keep(fake(words, { causal: true }, { id, name: ask.text, model: ask.model }), ask.text,
          new Date().toISOString());
        heard({ kind: "rows", trace: id });
        await wait(150);
      }
      if (signal.aborted) throw new DOMException("stopped", "AbortError");
      if (ask.steps === 0) keep(translation(id, [...words, "<eos>"], ["<s>", "猫", "在", "这里", "。"]), ask.text,
        new Date().toISOString());
      heard({ kind: "done", trace: id, text: null });
    },
    edit: async (trace, edits): Promise<EditEffect> => {
      server.asked.push(`edit ${trace} ${JSON.stringify(edits)}`);
      await wait(150);
      keep(translation(`${trace}-edited`, "The cat sat on the mat <eos>".split(" "),
        ["<s>", "狗", "坐", "在", "垫子", "上", "。"], 2, 4, { name: "edited" }), "The cat sat on the mat",
        new Date().toISOString());
      return {
        before: [{ name: "猫", share: 0.912 }, { name: "狗", share: 0.051 }, { name: " the", share: 0.004 }],
        after: [{ name: "狗", share: 0.61 }, { name: "猫", share: 0.22 }, { name: "鼠", share: 0.08 }],
        beforeText: "猫坐在垫子上。", afterText: "狗坐在垫子上面。", kl: 0.734, trace: `${trace}-edited`,
      };
    },
    page: async () => new Blob(["<!doctype html>"], { type: "text/html" }),
  };
  const alive = <T,>(value: T): T => {
    if (server.broken) throw new TypeError("Failed to fetch");
    return value;
  };
  return server;
}
