/** Frames of a canvas: at most one is asked for at a time, and who waits is told when nothing more will change. */
export class FrameQueue {
  private pending = 0;
  private waiting: (() => void)[] = [];

  constructor(
    private readonly draw: () => void, private readonly isComplete: () => boolean,
    private readonly signal: AbortSignal,
  ) {
    signal.addEventListener("abort", () => this.wake(), { once: true });
  }

  /** Draws with the next frame of the browser. */
  request = (): void => {
    if (this.pending === 0 && !this.signal.aborted) this.pending = requestAnimationFrame(this.draw);
  };

  /** A frame is being drawn: what changes from now on needs another one. */
  begin(): void {
    this.pending = 0;
  }

  /** A frame is done; wakes who waits where it was the last. */
  finish(): void {
    if (this.pending === 0 && this.isComplete()) this.wake();
  }

  /** Resolves when all that was asked for is drawn. */
  settled = (): Promise<void> => {
    this.request();
    return new Promise((wake) => (this.signal.aborted ? wake() : this.waiting.push(wake)));
  };

  private wake(): void {
    for (const wake of this.waiting.splice(0)) wake();
  }
}
