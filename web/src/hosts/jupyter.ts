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
  const queue = new QuestionQueue(model, patience);
  model.on("msg:custom", queue.receive);
  gone.addEventListener("abort", () => {
    model.off("msg:custom", queue.receive);
    queue.fail(aborted);
  }, { once: true });
  return (what, about, signal) =>
    new Promise<Answer>((answered, failed) => {
      if (gone.aborted || signal?.aborted) return failed(aborted());
      const question: Question = { what, about, answered, failed };
      signal?.addEventListener("abort", () => {
        queue.cancel(question);
        failed(aborted());
      }, { once: true });
      queue.add(question);
    });
}

/** Questions that wait, and those that the kernel has been sent and not answered yet. */
class QuestionQueue {
  private readonly waiting = new Set<Question>();
  private readonly sent = new Map<number, Question>();
  private next = Math.floor(Math.random() * 2 ** 40); // views of the same widget hear each other's answers
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly model: WidgetModel, private readonly patience: number) {}

  add(question: Question): void {
    this.waiting.add(question);
    this.send();
  }

  /** One that was not sent yet costs nothing. */
  cancel(question: Question): void {
    this.waiting.delete(question);
  }

  /** Gives up on all of them. */
  fail(reason: () => unknown): void {
    const open = [...this.sent.values(), ...this.waiting];
    clearTimeout(this.timer);
    this.sent.clear();
    this.waiting.clear();
    for (const question of open) question.failed(reason());
  }

  /** The kernel is lost where nothing at all is heard for a while. */
  private restartTimer(): void {
    clearTimeout(this.timer);
    this.timer = this.sent.size ? setTimeout(() => this.fail(kernelLost), this.patience) : undefined;
  }

  private send(): void {
    for (const question of this.waiting) {
      if (this.sent.size >= AT_ONCE) break;
      this.waiting.delete(question);
      this.sent.set(++this.next, question);
      try {
        this.model.send({ ask: this.next, what: question.what, about: question.about });
      } catch {
        this.fail(kernelLost);
      }
      this.restartTimer();
    }
  }

  receive = (content: unknown, buffers: readonly Bytes[] = []): void => {
    const { answer, error, code, about } =
      (content ?? {}) as { answer?: unknown; error?: unknown; code?: string; about?: ErrorDetails };
    const question = typeof answer === "number" ? this.sent.get(answer) : undefined;
    if (!question) return;
    this.sent.delete(answer as number);
    this.restartTimer();
    try {
      if (error !== undefined) throw new CodedError(String(error), code, about);
      question.answered(readAnswer(ownBuffer(buffers[0])));
    } catch (reason) {
      question.failed(reason);
    }
    this.send();
  };
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
