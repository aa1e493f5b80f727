/** Words in the reader's language. Each language is one file; a test sees to it that none misses a key. */
import { signal } from "@preact/signals";
import { en } from "./en";
import { zh } from "./zh";

export type Key = keyof typeof en;
export type Language = "en" | "zh";
export type Say = (key: Key, values?: Readonly<Record<string, string | number>>) => string;

export const LANGUAGES: Readonly<Record<Language, Readonly<Record<Key, string>>>> = { en, zh };
export const language = signal<Language>("en");

/** The words of a key; `{name}` in them is filled from `values`. Reads the language, so that watching views follow it. */
export const say: Say = (key, values = {}) =>
  LANGUAGES[language.value][key].replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));

/** The language of the machine where we have it, else English. */
export const preferredLanguage = (wanted: readonly string[]): Language =>
  wanted.map((tag) => tag.slice(0, 2).toLowerCase()).find((tag): tag is Language => tag in LANGUAGES) ?? "en";
