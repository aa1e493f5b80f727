/** One answer, read with care: each part is there, of the right kind and length, or an Error says in one sentence what is not. */
import type { Answer } from "./remoteSource";
import { CodedError } from "./errors";
import { isObject } from "./objects";

export class Reply {
  constructor(private readonly what: string, private readonly answer: Answer) {}

  /** An array of so many numbers; of any number where none is given. */
  floats(name: string, length?: number): Float32Array {
    const array = this.answer.arrays[name];
    return array instanceof Float32Array ? this.long(name, array, length) : this.wrong(`${name} is missing`);
  }

  /** The same, or null where there is none. */
  maybe(name: string, length?: number): Float32Array | null {
    return Object.hasOwn(this.answer.arrays, name) ? this.floats(name, length) : null;
  }

  whole(name: string, length?: number): Int32Array {
    const array = this.answer.arrays[name];
    return array instanceof Int32Array ? this.long(name, array, length) : this.wrong(`${name} is missing`);
  }

  marks(name: string, length: number): Uint8Array {
    const array = this.answer.arrays[name];
    return array instanceof Uint8Array ? this.long(name, array, length) : this.wrong(`${name} is missing`);
  }

  /** A whole number that is not negative. */
  count(name: string): number {
    const value = this.answer.fields[name];
    return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : this.wrong(`${name} is no count`);
  }

  exactly(name: string, wanted: number): number {
    const count = this.count(name);
    return count === wanted ? count : this.wrong(`${name} is ${count} where ${wanted} was wanted`);
  }

  /** A number, or null. */
  number(name: string): number | null {
    const value = this.answer.fields[name] ?? null;
    return value === null || typeof value === "number" ? value : this.wrong(`${name} is no number`);
  }

  text(name: string): string {
    const value = this.answer.fields[name];
    return typeof value === "string" ? value : this.wrong(`${name} is no text`);
  }

  oneOf<T extends string>(name: string, known: readonly T[]): T {
    const text = this.text(name);
    return known.find((one) => one === text) ?? this.wrong(`${name} is ${JSON.stringify(text)}`);
  }

  texts(name: string): readonly string[] {
    const value = this.answer.fields[name];
    const good = Array.isArray(value) && value.every((one) => typeof one === "string");
    return good ? (value as string[]) : this.wrong(`${name} are no texts`);
  }

  /** Lists of so many numbers or nulls, by name. */
  lists(name: string, length: number): Readonly<Record<string, readonly (number | null)[]>> {
    const lists = this.answer.fields[name];
    if (!isObject(lists)) return this.wrong(`${name} are missing`);
    for (const [key, list] of Object.entries(lists)) {
      const good = Array.isArray(list) && list.every((one) => one === null || typeof one === "number");
      if (!good || list.length !== length) return this.wrong(`${key} has no ${length} numbers`);
    }
    return lists as Record<string, (number | null)[]>;
  }

  private long<T extends { readonly length: number }>(name: string, found: T, length?: number): T {
    if (length === undefined || found.length === length) return found;
    return this.wrong(`${name} has ${found.length} numbers where ${length} were wanted`);
  }

  private wrong(why: string): never {
    throw new CodedError(`The answer for ${this.what} does not fit: ${why}.`, "answer.odd", { what: this.what });
  }
}
