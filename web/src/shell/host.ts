/** What the place where we run gives the studio: numbers, perhaps a server, perhaps an address bar. */
import type { Server } from "../hosts/server";
import type { Source } from "../trace/source";
import type { Language } from "../language/language";

export interface NamedSource {
  readonly name: string;
  readonly source: Source;
}

export interface Address {
  read(): string; // the hash, with or without its #
  write(hash: string, push: boolean): void;
  listen(heard: () => void, signal: AbortSignal): void; // back and forward
}

export interface Host {
  readonly source: Source | null;
  readonly server: Server | null;
  readonly address: Address | null; // null in a notebook
  readonly sources?: readonly NamedSource[]; // what else can be looked at and compared, where there is no server
  readonly notebook?: boolean; // a cell: it has no link of its own, and Python writes its page
  readonly language?: Language;
  readonly note?: string; // a sentence about what is held, such as its precision
}
