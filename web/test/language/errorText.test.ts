import { afterEach, describe, expect, it } from "vitest";
import { errorText, translateError } from "../../src/language/errorText";
import { LANGUAGES, language } from "../../src/language/language";
import { CodedError } from "../../src/trace/errors";

afterEach(() => {
  language.value = "en";
});

const sources = import.meta.glob<string>("../../src/{trace,hosts,entry}/**/*.ts", { query: "?raw", import: "default", eager: true });
const PART = "(?:text|picture|model|runs|trace|run|layer|head|batch|place|training|edit|flow|file|sent|access|disk|server|kernel|answer)";
const CODE = new RegExp(`"(${PART}\\.[a-z]+)"`, "g");

describe("what went wrong", () => {
  const long = new CodedError("the text has 1,900 tokens", "text.long", { tokens: 1900, limit: 512, model: "bert" });

  it("is said in the reader's language, with its numbers", () => {
    expect(errorText(long)).toBe("the text has 1,900 tokens, but bert reads at most 512; shorten it");
    language.value = "zh";
    expect(errorText(long)).toBe("文本有 1,900 个词元，而 bert 最多读取 512 个；请缩短文本");
  });

  it("is said as it came where nobody knows its code", () => {
    language.value = "zh";
    expect(errorText(new CodedError("a sentence", "new.code", { a: 1 }))).toBe("a sentence");
    expect(errorText(new Error("a sentence"))).toBe("a sentence");
    for (const code of [undefined, null, 7, "", "toString", "__proto__", {}]) expect(translateError("as it came", code, null)).toBe("as it came");
  });

  it("does no harm when a server tells nonsense", () => {
    expect(translateError("x", "text.long", null)).toContain("{tokens}");
    expect(translateError("x", "text.long", { tokens: {}, limit: null, model: "<b>$&" })).toContain("<b>$&");
    expect(errorText(new CodedError("x", "file.damaged", { where: "a".repeat(5000) })).length).toBe(600);
  });

  it("has words in every language for each code that the browser throws itself", () => {
    const found = new Set(Object.values(sources).flatMap((text) => [...text.matchAll(CODE)].map((one) => one[1]!)));
    expect(found.size).toBeGreaterThan(20);
    for (const code of found)
      for (const messages of Object.values(LANGUAGES)) expect(messages, code).toHaveProperty([`code.${code}`]);
  });
});
