import { afterEach, describe, expect, it } from "vitest";
import { LANGUAGES, type Key, language, preferredLanguage, say } from "../../src/language/language";

afterEach(() => {
  language.value = "en";
});

const holes = (text: string): string[] => [...text.matchAll(/\{(\w+)\}/g)].map((found) => found[1]!).sort();

describe("languages", () => {
  it("have the same keys in the same order", () => {
    expect(Object.keys(LANGUAGES.en).length).toBeGreaterThan(300);
    for (const messages of Object.values(LANGUAGES)) expect(Object.keys(messages)).toEqual(Object.keys(LANGUAGES.en));
  });

  it("have the same holes to fill, and no empty words", () => {
    for (const key of Object.keys(LANGUAGES.en) as Key[])
      for (const messages of Object.values(LANGUAGES)) {
        expect(messages[key].trim() === "" && key !== "comma", key).toBe(false);
        expect(holes(messages[key]), key).toEqual(holes(LANGUAGES.en[key]));
      }
  });

  it("Chinese is Chinese", () => {
    const same = (Object.keys(LANGUAGES.en) as Key[]).filter((key) =>
      LANGUAGES.zh[key] === LANGUAGES.en[key] && /[a-z]{4,}/.test(LANGUAGES.en[key].replace(/\{\w+\}/g, "")));
    expect(same.filter((key) => !key.startsWith("numbers.name"))).toEqual([]);
  });

  it("a value that holds braces is not filled again, and foreign values do no harm", () => {
    expect(say("shell.looks", { query: "{list}", list: "</script>$&$1" })).toBe("{list} attends to </script>$&$1");
    expect(say("shell.looks", { query: "猫" })).toContain("{list}");
  });

  it("follow the machine where they can", () => {
    expect(preferredLanguage(["zh-CN", "en"])).toBe("zh");
    expect(preferredLanguage(["fr", "EN-gb"])).toBe("en");
    expect(preferredLanguage(["toString", "__proto__"])).toBe("en");
    expect(preferredLanguage([])).toBe("en");
  });
});
