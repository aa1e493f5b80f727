import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { askKernel, AT_ONCE, type Bytes, type WidgetModel, PATIENCE } from "../../src/hosts/jupyter";
import { render } from "../../src/entry/notebook";
import { LANGUAGES } from "../../src/language/language";
import { fake } from "../fake";

type Heard = (content: unknown, buffers?: readonly Bytes[]) => void;
interface Sent { readonly ask: number; readonly what: string; readonly about: object }

/** A kernel that answers when the test says so. */
class Kernel implements WidgetModel {
  readonly sent: Sent[] = [];
  readonly kept: Record<string, unknown> = {};
  readonly ears = new Set<Heard>();
  saved = 0;
  constructor(readonly state: Record<string, unknown> = {}) {}
  get(name: string): unknown { return this.state[name]; }
  set(name: string, value: unknown): void { this.kept[name] = value; }
  save_changes(): void { this.saved++; }
  send(content: unknown): void { this.sent.push(content as Sent); }
  on(_: string, heard: Heard): void { this.ears.add(heard); }
  off(_: string, heard: Heard): void { this.ears.delete(heard); }
  say(content: unknown, ...buffers: Bytes[]): void { for (const ear of [...this.ears]) ear(content, buffers); }
  answer(number: number, weights: readonly number[]): void { this.say({ answer: this.sent[number]!.ask }, bytesOf(weights)); }
}

/** A safetensors blob with one array, as a view that does not begin at the first byte of its buffer. */
function bytesOf(weights: readonly number[]): DataView {
  const header = JSON.stringify({
    __metadata__: { facts: JSON.stringify({ sampled: 3 }) },
    weights: { dtype: "F32", shape: [weights.length], data_offsets: [0, 4 * weights.length] },
  });
  const padded = header + " ".repeat((8 - (header.length % 8)) % 8);
  const whole = new Uint8Array(5 + 8 + padded.length + 4 * weights.length);
  const view = new DataView(whole.buffer, 5);
  view.setBigUint64(0, BigInt(padded.length), true);
  whole.set(new TextEncoder().encode(padded), 13);
  weights.forEach((weight, i) => view.setFloat32(8 + padded.length + 4 * i, weight, true));
  return view;
}

describe("questions to a kernel", () => {
  let gone: AbortController;
  beforeEach(() => {
    vi.useFakeTimers();
    gone = new AbortController();
  });
  afterEach(() => {
    gone.abort();
    vi.useRealTimers();
  });

  it("are answered by number, whatever the order", async () => {
    const kernel = new Kernel();
    const ask = askKernel(kernel, gone.signal);
    const first = ask("row", { query: 1 }), second = ask("row", { query: 2 });
    expect(kernel.sent.map(({ what, about }) => ({ what, about }))).toEqual([
      { what: "row", about: { query: 1 } }, { what: "row", about: { query: 2 } },
    ]);
    kernel.say({ answer: -1 }, bytesOf([9]));
    kernel.say("noise");
    kernel.say(null);
    kernel.answer(1, [0.25, 0.5]);
    kernel.answer(0, [0.75]);
    expect(Array.from((await second).arrays["weights"]!)).toEqual([0.25, 0.5]);
    expect(Array.from((await first).arrays["weights"]!)).toEqual([0.75]);
    expect((await first).fields).toEqual({ sampled: 3 });
  });

  it("fail with the kernel's own sentence", async () => {
    const kernel = new Kernel();
    const answer = askKernel(kernel, gone.signal)("row", {});
    const told = { code: "layer.none", about: { layer: 99, layers: 3 } };
    kernel.say({ answer: kernel.sent[0]!.ask, error: "layer 99 was asked for, but there are 3", ...told });
    await expect(answer).rejects.toThrow("layer 99 was asked for, but there are 3");
    await expect(answer).rejects.toMatchObject(told); // by which it is said in the reader's language
  });

  it("wait for their turn, and cost nothing when they are called off before it", async () => {
    const kernel = new Kernel();
    const ask = askKernel(kernel, gone.signal);
    const ends = Array.from({ length: AT_ONCE + 2 }, () => new AbortController());
    const answers = ends.map((end, i) => ask("tile", { i }, end.signal).catch((error: Error) => error.name));
    expect(kernel.sent).toHaveLength(AT_ONCE);
    ends[AT_ONCE]!.abort();
    ends[0]!.abort();
    kernel.answer(0, [1]); // of one that nobody waits for any more: its place is free again
    expect(kernel.sent.map(({ about }) => about).at(-1)).toEqual({ i: AT_ONCE + 1 });
    expect(kernel.sent).toHaveLength(AT_ONCE + 1);
    expect(await answers[0]).toBe("AbortError");
    expect(await answers[AT_ONCE]).toBe("AbortError");
  });

  it("are given up with a sentence when nothing is heard for long", async () => {
    const kernel = new Kernel();
    const ask = askKernel(kernel, gone.signal);
    const lost = Array.from({ length: AT_ONCE + 1 }, () => ask("tile", {}).catch((error: unknown) => error));
    await vi.advanceTimersByTimeAsync(PATIENCE - 1);
    kernel.answer(0, [1]); // it lives: the others get their time anew
    await vi.advanceTimersByTimeAsync(PATIENCE - 1);
    expect(kernel.sent).toHaveLength(AT_ONCE + 1);
    await vi.advanceTimersByTimeAsync(2);
    const failures = (await Promise.all(lost)).slice(1) as Error[];
    expect(failures.map(({ name }) => name)).toEqual(Array.from({ length: AT_ONCE }, () => "Lost"));
    expect(failures[0]!.message).toBe(LANGUAGES.en["errors.kernel"]);
  });

  it("are given up at once where nothing can be sent", async () => {
    const kernel = new Kernel();
    kernel.send = () => { throw new Error("the comm is closed"); };
    await expect(askKernel(kernel, gone.signal)("row", {})).rejects.toThrow(LANGUAGES.en["errors.kernel"]);
  });

  it("end with the cell", async () => {
    const kernel = new Kernel();
    const ask = askKernel(kernel, gone.signal);
    const answer = ask("row", {});
    gone.abort();
    await expect(answer).rejects.toThrow("called off");
    await expect(ask("row", {})).rejects.toThrow("called off");
    expect(kernel.ears.size).toBe(0);
  });
});

describe("a widget", () => {
  it("stands in a shadow root of its height, and goes without a trace", () => {
    const { info } = fake(["a", "b", "c"]);
    const kernel = new Kernel({ info: JSON.stringify(info), height: 432, layer: 1, head: 2, place: "" });
    const cell = document.body.appendChild(document.createElement("div"));
    const leave = render({ model: kernel, el: cell });
    const frame = cell.firstElementChild as HTMLElement;
    expect(frame.style.height).toBe("432px");
    expect(frame.dataset["lmSuppressShortcuts"]).toBe("true");
    expect(frame.shadowRoot?.querySelector(".regard")).not.toBeNull();
    expect(kernel.ears.size).toBe(1);
    leave();
    expect(cell.childElementCount).toBe(0);
    expect(kernel.ears.size).toBe(0);
  });

  it("keeps its keys from the notebook", () => {
    const { info } = fake(["a", "b"]);
    const cell = document.body.appendChild(document.createElement("div"));
    const leave = render({ model: new Kernel({ info: JSON.stringify(info), height: 300 }), el: cell });
    const heard = vi.fn();
    cell.addEventListener("keydown", heard);
    cell.firstElementChild!.dispatchEvent(new KeyboardEvent("keydown", { key: "d", bubbles: true, composed: true }));
    expect(heard).not.toHaveBeenCalled();
    leave();
  });
});

describe("a still picture above the explorer", () => {
  const KEY = "0123456789abcdef";
  const state = { info: JSON.stringify(fake(["The", "cat", "sat"]).info), height: 400, layer: -1, head: -1, still: KEY };
  const place = (): HTMLElement => document.body.appendChild(document.createElement("div"));
  const stands = (): HTMLElement => {
    const still = place();
    still.className = `regard-still regard-still-${KEY}`;
    return still;
  };
  afterEach(() => document.body.replaceChildren());

  it("stays where nobody answers, and gives way at the first sign of a kernel", () => {
    const still = stands(), el = place(), kernel = new Kernel(state);
    const leave = render({ model: kernel, el });
    expect(kernel.sent).toMatchObject([{ what: "hello" }]);
    expect(el.childElementCount).toBe(0);
    expect(getComputedStyle(still).display).not.toBe("none");
    kernel.say({ answer: kernel.sent[0]!.ask + 1 });
    expect(el.childElementCount).toBe(0);
    kernel.say({ answer: kernel.sent[0]!.ask });
    expect(el.childElementCount).toBe(1);
    expect(getComputedStyle(still).display).toBe("none");
    leave();
    expect(getComputedStyle(still).display).not.toBe("none");
    expect(kernel.ears.size).toBe(0);
  });

  it("is not waited for where there is none, and no key can be more than a key", () => {
    const first = place(), kernel = new Kernel(state);
    const leave = render({ model: kernel, el: first });
    expect(first.childElementCount).toBe(1);
    leave();
    stands();
    const bad = place(), worse = new Kernel({ ...state, still: `${KEY} } * { display: none` });
    const away = render({ model: worse, el: bad });
    expect(document.head.textContent).not.toContain("*");
    away();
  });

  it("outlives a kernel that cannot even be asked", () => {
    const still = stands(), el = place(), kernel = new Kernel(state);
    kernel.send = () => { throw new Error("the comm is closed"); };
    const leave = render({ model: kernel, el });
    expect(getComputedStyle(still).display).not.toBe("none");
    leave();
  });
});
