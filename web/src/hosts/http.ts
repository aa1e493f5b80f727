/**
 * The server behind a page of `regard serve`: questions by fetch, runs by WebSocket. The token is a cookie that no
 * script can read; the browser sends it by itself.
 */
import { isAbort, translateError } from "../language/errorText";
import { type Key, say } from "../language/language";
import { type Ask, openRemoteSource, readAnswer } from "../trace/remoteSource";
import { CodedError } from "../trace/errors";
import type { Source, TraceInfo } from "../trace/source";
import type { Server } from "./server";
import type { EditEffect, ErrorAnswer, ModelInfo, RunEvent, TraceCard, TraceLink, TrainingCard } from "../trace/messages";
import { shrinkPicture } from "./shrinkPicture";

/** What the browser gives us; a test gives something else. */
export interface Network {
  readonly fetch: (address: string, how: RequestInit) => Promise<Response>;
  readonly socket: (address: string) => WebSocket;
  readonly origin: string;
}

/** No answer came at all. */
export class ConnectionLost extends Error {
  override name = "Lost";
}

const browserNetwork = (): Network => ({
  fetch: (address, how) => globalThis.fetch(address, how),
  socket: (address) => new WebSocket(address),
  origin: globalThis.location.origin,
});

const STEPS: ReadonlyMap<string, Key> = new Map([
  ["loading", "errors.http.loading"], ["translating", "errors.http.translating"],
  ["summarising", "errors.http.summarising"], ["waiting", "errors.http.waiting"],
]);

/** The server at our own address. */
export function overHttp(network: Network = browserNetwork()): Server {
  const call = (path: string, how: RequestInit = {}): Promise<Response> => request(network, path, how);
  const json = async <T>(path: string, how?: RequestInit): Promise<T> => (await call(path, how)).json() as Promise<T>;
  const sent = (method: string, what: object, signal?: AbortSignal): RequestInit => ({
    method, body: JSON.stringify(what), headers: { "content-type": "application/json" }, ...(signal ? { signal } : {}),
  });

  const open = async (id: string, run?: number): Promise<Source> => {
    const at = `/api/traces/${encodeURIComponent(id)}`;
    const wanted = run === undefined ? "" : `run=${run}`;
    const response = await call(wanted === "" ? at : `${at}?${wanted}`);
    const look = Number(response.headers.get("x-look") ?? 0);
    const which = [wanted, look > 0 ? `look=${look}` : ""].filter(Boolean).join("&");
    const ask: Ask = async (what, about, signal) => {
      const path = `${at}/ask/${encodeURIComponent(what)}${which && `?${which}`}`;
      const answer = await call(path, sent("POST", about, signal));
      return readAnswer(await orConnectionLost(answer.arrayBuffer()));
    };
    return openRemoteSource(ask, (await response.json()) as TraceInfo);
  };

  return {
    models: () => json<ModelInfo[]>("/api/models"),
    traces: () => json<TraceCard[]>("/api/traces"),
    trainings: () => json<TrainingCard[]>("/api/trainings"),
    open,
    openTraining: async (id, step, example) =>
      open((await json<TraceLink>(`/api/trainings/${encodeURIComponent(id)}/${step}/${example}`)).trace),
    upload: async (file) =>
      (await json<TraceLink>("/api/traces", {
        method: "POST", body: file, headers: { "x-name": headerValue(file.name) },
      })).trace,
    rename: async (id, name) => void (await call(`/api/traces/${encodeURIComponent(id)}`, sent("PATCH", { name }))),
    forget: async (id) => void (await call(`/api/traces/${encodeURIComponent(id)}`, { method: "DELETE" })),
    run: async (ask, heard, signal) => {
      const picture = ask.picture === null ? null : await shrinkPicture(ask.picture);
      return runOverSocket(network, JSON.stringify({ ...ask, picture }), heard, signal);
    },
    edit: (id, edits, signal) =>
      json<EditEffect>(`/api/traces/${encodeURIComponent(id)}/edit`, sent("POST", { edits }, signal)),
    page: async (id) => orConnectionLost((await call(`/api/traces/${encodeURIComponent(id)}/page`)).blob()),
  };
}

/** The answer to one request, if it is a good one; else the server's own sentence. */
async function request(network: Network, path: string, how: RequestInit): Promise<Response> {
  const always = { credentials: "same-origin", cache: "no-store", redirect: "error" } as const;
  const answer = await orConnectionLost(network.fetch(path, { ...always, ...how }));
  if (answer.ok) return answer;
  if (answer.status === 401) throw new Error(say("errors.http.token"));
  throw await serverError(answer);
}

/** What arrives whole; a connection that breaks meanwhile is told as one. */
async function orConnectionLost<T>(coming: Promise<T>): Promise<T> {
  try {
    return await coming;
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ConnectionLost(say("errors.http.lost"));
  }
}

async function serverError(answer: Response): Promise<Error> {
  try {
    const { error, code, about } = (await answer.json()) as Partial<ErrorAnswer>;
    if (typeof error === "string" && error !== "") return new CodedError(error, code, about);
  } catch {
    // something else than our server has answered
  }
  return new Error(say("errors.http.status", { status: answer.status }));
}

/** A file's name as a header may hold it. */
const headerValue = (name: string): string =>
  encodeURIComponent(name.slice(0, 200).replace(/[\uD800-\uDFFF]/gu, "\uFFFD"));

/** The event, its sentence in the reader's language. */
function translateEvent(event: RunEvent): RunEvent {
  if (event.kind === "failed" || event.kind === "trouble")
    return { ...event, text: translateError(event.text, event.code, event.about) };
  const key = event.kind === "progress" ? STEPS.get(event.step) : undefined;
  return event.kind === "progress" && key ? { ...event, text: say(key, { name: event.name ?? "" }) } : event;
}

/** One run, until it is done or has failed; ends with Lost where the connection breaks before. */
function runOverSocket(
  network: Network, ask: string, heard: (event: RunEvent) => void, signal: AbortSignal,
): Promise<void> {
  return new Promise((done, failed) => {
    const aborted = (): DOMException => new DOMException("called off", "AbortError");
    if (signal.aborted) return failed(aborted());
    const socket = network.socket(`${network.origin.replace(/^http/, "ws")}/api/run`);
    const over = new AbortController();
    const end = (how: () => void): void => {
      over.abort();
      socket.close();
      how();
    };
    const on = { signal: over.signal };
    signal.addEventListener("abort", () => end(() => failed(aborted())), on);
    socket.addEventListener("open", () => socket.send(ask), on);
    socket.addEventListener("close", () => end(() => failed(new ConnectionLost(say("errors.http.lost")))), on);
    socket.addEventListener("error", () => end(() => failed(new ConnectionLost(say("errors.http.lost")))), on);
    socket.addEventListener("message", ({ data }: MessageEvent) => {
      const event = JSON.parse(String(data)) as RunEvent;
      heard(translateEvent(event));
      if (event.kind === "done" || event.kind === "failed") end(done);
    }, on);
  });
}
