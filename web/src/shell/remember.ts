/** What is remembered between visits. Pages from a file and notebooks may deny it: then nothing is, without a word. */
type Where = "local" | "session";

const store = (where: Where): Storage | null => {
  try {
    return where === "local" ? globalThis.localStorage : globalThis.sessionStorage;
  } catch {
    return null; // reading the name alone throws where storage is denied
  }
};

/** What was kept under this name, null where nothing was. */
export function recall(name: string, where: Where = "local"): string | null {
  try {
    return store(where)?.getItem(`regard.${name}`) ?? null;
  } catch {
    return null;
  }
}

/** Keeps a text under this name if it may. */
export function remember(name: string, text: string, where: Where = "local"): void {
  try {
    store(where)?.setItem(`regard.${name}`, text);
  } catch {
    // full or denied: only the memory of a setting is lost
  }
}
