import { beforeEach, describe, expect, it, vi } from "vitest";
import { type Network, ConnectionLost, overHttp } from "../../src/hosts/http";
import type { RunEvent, RunRequest } from "../../src/trace/messages";
import { errorText } from "../../src/language/errorText";
import { language, say } from "../../src/language/language";
import { fake } from "../fake";

const { opened } = vi.hoisted(() => ({ opened: [] as { ask: (...all: unknown[]) => Promise<unknown>; info: unknown }[] }));
vi.mock("../../src/trace/remoteSource", () => ({
  openRemoteSource: (ask: (...all: unknown[]) => Promise<unknown>, info: unknown) => (opened.push({ ask, info }), { info }),
  readAnswer: (bytes: ArrayBuffer) => ({ fields: {}, arrays: { bytes: new Uint8Array(bytes) } }),
}));

/** A WebSocket whose other end is the test. */
class Socket extends EventTarget {
  static made: Socket[] = [];
  sent: string[] = [];
  closed = 0;
  constructor(readonly address: string) {
    super();
    Socket.made.push(this);
  }
  send(text: string): void {
    this.sent.push(text);
  }
  close(): void {
    this.closed++;
  }
  says(event: object): void {
    this.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(event) }));
  }
}

type Call = { address: string; how: RequestInit };
const calls: Call[] = [];
const json = (what: unknown, status = 200, headers = {}): Response => new Response(JSON.stringify(what), { status, headers });
const ground = (answer: (call: Call) => Response | Promise<Response>): Network => ({
  fetch: async (address, how) => {
    calls.push({ address, how });
    return answer({ address, how });
  },
  socket: (address) => new Socket(address) as unknown as WebSocket,
  origin: "http://127.0.0.1:8765",
});
const ASK: RunRequest = { model: "en-zh", text: "猫 </script>", steps: 3, temperature: 0, edits: [], picture: null };

beforeEach(() => {
  calls.length = Socket.made.length = opened.length = 0;
  language.value = "en";
});

describe("questions", () => {
  it("asks for lists where they are, with the cookie of this page alone", async () => {
    const server = overHttp(ground(() => json([{ name: "en-zh" }])));
    expect(await server.models()).toEqual([{ name: "en-zh" }]);
    await server.traces();
    await server.trainings();
    expect(calls.map((call) => call.address)).toEqual(["/api/models", "/api/traces", "/api/trainings"]);
    expect(calls[0]!.how).toMatchObject({ credentials: "same-origin", redirect: "error" });
  });

  it("opens a trace, and asks about the very look that it opened", async () => {
    const info = JSON.parse(JSON.stringify(fake(["猫", "坐"]).info)) as object;
    const server = overHttp(ground(({ how }) =>
      how.method === "POST" ? new Response(new Uint8Array([1, 2, 3])) : json(info, 200, { "x-look": "4" })));
    expect((await server.open("ab/../c", 2)).info).toEqual(info);
    const answer = (await opened[0]!.ask("row", { layer: 1, query: 7 })) as { arrays: { bytes: Uint8Array } };
    expect([...answer.arrays.bytes]).toEqual([1, 2, 3]);
    expect(calls.map((call) => call.address)).toEqual([
      "/api/traces/ab%2F..%2Fc?run=2", "/api/traces/ab%2F..%2Fc/ask/row?run=2&look=4",
    ]);
    expect(calls[1]!.how.body).toBe('{"layer":1,"query":7}');
  });

  it("opens an example of a training as the trace that the server names", async () => {
    const server = overHttp(ground(({ address }) => json(address.startsWith("/api/trainings") ? { trace: "f00" } : {})));
    await server.openTraining("0b", 200, 1);
    expect(calls.map((call) => call.address)).toEqual(["/api/trainings/0b/200/1", "/api/traces/f00"]);
  });

  it("sends, renames, forgets, edits and takes along", async () => {
    const server = overHttp(ground(() => json({ trace: "12" })));
    const file = new File([new Uint8Array(5)], "猫\uD800.trace");
    expect(await server.upload(file)).toBe("12");
    await server.rename("a", "new");
    await server.forget("a");
    await server.edit("a", [], new AbortController().signal);
    expect(await (await server.page("a")).text()).toBe('{"trace":"12"}');
    expect(calls.map((call) => `${call.how.method ?? "GET"} ${call.address}`)).toEqual([
      "POST /api/traces", "PATCH /api/traces/a", "DELETE /api/traces/a", "POST /api/traces/a/edit", "GET /api/traces/a/page",
    ]);
    expect(calls[0]!.how.headers).toEqual({ "x-name": `${encodeURIComponent("猫\uFFFD")}.trace` });
    expect(calls[1]!.how.body).toBe('{"name":"new"}');
  });
});

describe("what goes wrong", () => {
  it("hands on the server's own sentence", async () => {
    const server = overHttp(ground(() => json({ error: "there is no such trace" }, 404)));
    await expect(server.open("a")).rejects.toThrow("there is no such trace");
  });

  it("hands on its code, so that it can be said in the reader's language", async () => {
    const told = { error: "the disk is full", code: "disk.full", about: { folder: "/runs", why: "no space" } };
    const failed = await overHttp(ground(() => json(told, 507))).upload(new File([], "a.trace")).catch((error: unknown) => error);
    language.value = "zh";
    expect(errorText(failed)).toBe(say("code.disk.full", told.about));
    expect(errorText(failed)).toContain("磁盘已满");
  });

  it("says what to do without a token, and where the server says nothing", async () => {
    await expect(overHttp(ground(() => json({ error: "x" }, 401))).models()).rejects.toThrow(say("errors.http.token"));
    await expect(overHttp(ground(() => new Response("<h1>", { status: 502 }))).models()).rejects.toThrow("502");
    language.value = "zh";
    await expect(overHttp(ground(() => json({ error: "x" }, 401))).models()).rejects.toThrow(say("errors.http.token"));
  });

  it("tells a lost connection from a call that was called off", async () => {
    const fails = (error: Error): Network => ground(() => Promise.reject(error));
    await expect(overHttp(fails(new TypeError("Failed to fetch"))).models()).rejects.toBeInstanceOf(ConnectionLost);
    await expect(overHttp(fails(new DOMException("", "AbortError"))).models()).rejects.toThrow(expect.objectContaining({ name: "AbortError" }));
  });

  it("is lost too where an answer breaks off", async () => {
    const broken = Object.assign(json({}), { blob: () => Promise.reject(new TypeError("network error")) });
    await expect(overHttp(ground(() => broken)).page("a")).rejects.toBeInstanceOf(ConnectionLost);
  });
});

describe("a run", () => {
  const start = async (signal = new AbortController().signal) => {
    const heard: RunEvent[] = [];
    const run = overHttp(ground(() => json({}))).run(ASK, (event) => heard.push(event), signal);
    run.catch(() => undefined);
    await Promise.resolve();
    return { heard, run, socket: Socket.made[0]! };
  };

  it("sends what is asked once it is open, and hears until it is done", async () => {
    const { heard, run, socket } = await start();
    expect([socket.address, socket.sent]).toEqual(["ws://127.0.0.1:8765/api/run", []]);
    socket.dispatchEvent(new Event("open"));
    expect(JSON.parse(socket.sent[0]!)).toEqual(ASK);
    const events = [{ kind: "token", text: "坐", number: 1, of: 3 }, { kind: "done", trace: "1f", text: "猫坐" }];
    for (const event of events) socket.says(event);
    await run;
    expect([heard, socket.closed]).toEqual([events, 1]);
  });

  it("says what happens in the reader's language", async () => {
    language.value = "zh";
    const { heard, socket } = await start();
    socket.says({ kind: "progress", text: "loading en-zh", share: null, step: "loading", name: "en-zh" });
    socket.says({ kind: "progress", text: "something new", share: 0.5, step: "constructor" });
    expect(heard.map((event) => event.kind === "progress" && event.text)).toEqual([say("errors.http.loading", { name: "en-zh" }), "something new"]);
  });

  it("ends with what failed, without being lost", async () => {
    const { heard, run, socket } = await start();
    socket.says({ kind: "failed", text: "the text is empty" });
    socket.dispatchEvent(new Event("close"));
    await expect(run).resolves.toBeUndefined();
    expect(heard).toEqual([{ kind: "failed", text: "the text is empty" }]);
  });

  it("says in the reader's language what failed, and what went wrong beside it", async () => {
    language.value = "zh";
    const { heard, socket } = await start();
    const memory = { folder: "/runs", why: "no space" };
    socket.says({ kind: "trouble", text: "could not be kept", code: "disk.memory", about: memory });
    socket.says({ kind: "failed", text: "the text is empty", code: "text.empty", about: {} });
    expect(heard.map((event) => "text" in event && event.text)).toEqual([say("code.disk.memory", memory), say("code.text.empty")]);
  });

  it("closes the connection when it is called off", async () => {
    const stop = new AbortController();
    const { run, socket } = await start(stop.signal);
    stop.abort();
    await expect(run).rejects.toThrow(expect.objectContaining({ name: "AbortError" }));
    expect(socket.closed).toBe(1);
    await expect((await start(stop.signal)).run).rejects.toThrow(expect.objectContaining({ name: "AbortError" }));
  });

  it("is lost where the connection closes before it is done", async () => {
    const { run, socket } = await start();
    socket.dispatchEvent(new Event("close"));
    await expect(run).rejects.toBeInstanceOf(ConnectionLost);
  });
});
