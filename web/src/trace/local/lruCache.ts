/** What was made lately, up to so many bytes; the oldest goes first. */
export class Recent<T> {
  private readonly kept = new Map<string, { readonly value: T; readonly bytes: number }>();
  private held = 0;
  constructor(private readonly most: number) {}

  get(name: string): T | undefined {
    const found = this.kept.get(name);
    if (found === undefined) return undefined;
    this.kept.delete(name);
    this.kept.set(name, found);
    return found.value;
  }

  drop(name: string): void {
    this.held -= this.kept.get(name)?.bytes ?? 0;
    this.kept.delete(name);
  }

  put(name: string, value: T, bytes: number): T {
    const old = this.kept.get(name);
    if (old) this.held -= old.bytes;
    this.kept.delete(name);
    this.kept.set(name, { value, bytes });
    this.held += bytes;
    for (const [first, { bytes: size }] of this.kept) {
      if (this.held <= this.most || first === name) break;
      this.kept.delete(first);
      this.held -= size;
    }
    return value;
  }
}
