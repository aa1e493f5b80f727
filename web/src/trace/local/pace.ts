/** Long work in short steps: the page is drawn and heard between them, and what nobody waits for any more stops. */

const STEP = 12; // milliseconds between two breaths

/** Lets the page do what it has to do, then goes on. */
const yieldToPage = (): Promise<void> =>
  new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel(); // setTimeout would wait at least 4 ms each time
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });

/** How urgent work is: what somebody looks at, the small pictures beside it, what can wait. */
export type Rank = 0 | 1 | 2;
const waiting: [number, number, number] = [0, 0, 0];

/** One piece of work. `due()` says whether it is time for `await rest()`, which also throws where it was stopped. */
export class Pace {
  private last = performance.now();
  constructor(private readonly rank: Rank, private readonly signal?: AbortSignal) {}

  /** The same for work that others wait for too: it is not stopped. */
  alone(): Pace {
    return new Pace(this.rank);
  }

  due(): boolean {
    return performance.now() - this.last > STEP;
  }

  async rest(): Promise<void> {
    do {
      await yieldToPage();
      throwIfAborted(this.signal);
    } while (waiting.some((count, rank) => rank < this.rank && count > 0)); // the more urgent first
    this.last = performance.now();
  }
}

/** Does the work at its pace; more urgent work that comes meanwhile goes first. */
export async function runPaced<T>(
  rank: Rank, signal: AbortSignal | undefined, work: (pace: Pace) => Promise<T>,
): Promise<T> {
  throwIfAborted(signal);
  waiting[rank]++;
  try {
    return await work(new Pace(rank, signal));
  } finally {
    waiting[rank]--;
  }
}

export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new DOMException("Nobody waits for this any more.", "AbortError");
}
