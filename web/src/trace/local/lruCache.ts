/** What was made lately, up to so many bytes; the oldest goes first. */
export class LruCache<T> {
  private readonly entries = new Map<string, { readonly value: T; readonly bytes: number }>();
  private bytes = 0;
  constructor(private readonly most: number) {}

  get(name: string): T | undefined {
    const entry = this.entries.get(name);
    if (entry === undefined) return undefined;
    this.entries.delete(name);
    this.entries.set(name, entry);
    return entry.value;
  }

  drop(name: string): void {
    this.bytes -= this.entries.get(name)?.bytes ?? 0;
    this.entries.delete(name);
  }

  put(name: string, value: T, bytes: number): T {
    const old = this.entries.get(name);
    if (old) this.bytes -= old.bytes;
    this.entries.delete(name);
    this.entries.set(name, { value, bytes });
    this.bytes += bytes;
    for (const [first, { bytes: size }] of this.entries) {
      if (this.bytes <= this.most || first === name) break;
      this.entries.delete(first);
      this.bytes -= size;
    }
    return value;
  }
}
