/**
 * Questions to a notebook's kernel, as messages of a widget: `{ask, what, about}` goes there, `{answer, error?}` and
 * one buffer come back. The kernel answers one after the other, so only a few are under way; those that wait can
 * still be called off for nothing.
 */
import { say } from "../language/language";
import type { Answer, Ask } from "../trace/remoteSource";
import { readAnswer } from "../trace/remoteSource";
import { type ErrorDetails, CodedError } from "../trace/errors";

/** What a widget's front end is handed. */
export interface WidgetModel {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(content: unknown): void;
  on(event: string, heard: (content: unknown, buffers?: readonly Bytes[]) => void): void;
  off(event: string, heard: (content: unknown, buffers?: readonly Bytes[]) => void): void;
}
export type Bytes = ArrayBuffer | ArrayBufferView;

interface Question {
  readonly what: string;
  readonly about: object;
  readonly answered: (answer: Answer) => void;
  readonly failed: (error: unknown) => void;
}

export const AT_ONCE = 3;
export const PATIENCE = 45_000; // milliseconds in which nothing at all was heard

/** A way to ask the kernel behind `model`, until `gone` fires. */
export function askKernel(model: WidgetModel, gone: AbortSignal, patience: number = PATIENCE): Ask {
  const waiting = new Set<Question>();
  const sent = new Map<number, Question>();
  let next = Math.floor(Math.random() * 2 ** 40); // views of the same widget hear each other's answers
  let timer: ReturnType<typeof setTimeout> | undefined;

  const listen = (): void => {
    clearTimeout(timer);
    timer = sent.size ? setTimeout(giveUp, patience) : undefined;
  };
  const giveUp = (): void => {
    const open = [...sent.values(), ...waiting];
    sent.clear();
    waiting.clear();
    for (const question of open) question.failed(kernelLost());
  };
  const go = (): void => {
    for (const question of waiting) {
      if (sent.size >= AT_ONCE) break;
      waiting.delete(question);
      sent.set(++next, question);
      try {
        model.send({ ask: next, what: question.what, about: question.about });
      } catch {
        giveUp();
      }
      listen();
    }
  };
  const heard = (content: unknown, buffers: readonly Bytes[] = []): void => {
    const { answer, error, code, about } =
      (content ?? {}) as { answer?: unknown; error?: unknown; code?: string; about?: ErrorDetails };
    const question = typeof answer === "number" ? sent.get(answer) : undefined;
    if (!question) return;
    sent.delete(answer as number);
    listen();
    try {
      if (error !== undefined) throw new CodedError(String(error), code, about);
      question.answered(readAnswer(ownBuffer(buffers[0])));
    } catch (reason) {
      question.failed(reason);
    }
    go();
  };

  model.on("msg:custom", heard);
  gone.addEventListener("abort", () => {
    model.off("msg:custom", heard);
    clearTimeout(timer);
    for (const question of [...sent.values(), ...waiting]) question.failed(aborted());
    sent.clear();
    waiting.clear();
  }, { once: true });

  return (what, about, signal) =>
    new Promise<Answer>((answered, failed) => {
      if (gone.aborted || signal?.aborted) return failed(aborted());
      const question: Question = { what, about, answered, failed };
      signal?.addEventListener("abort", () => {
        waiting.delete(question);
        failed(aborted());
      }, { once: true });
      waiting.add(question);
      go();
    });
}

/** The studio tells a lost connection from other failures by its name. */
const kernelLost = (): Error => Object.assign(new Error(say("errors.kernel")), { name: "Lost" });
const aborted = (): DOMException => new DOMException("called off", "AbortError");

/** The bytes of a buffer alone, from their first on: arrays in them must begin at even places. */
function ownBuffer(bytes: Bytes | undefined): ArrayBuffer {
  if (bytes === undefined) throw kernelLost();
  if (!ArrayBuffer.isView(bytes)) return bytes;
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;
}
