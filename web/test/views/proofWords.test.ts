import { afterEach, describe, expect, it } from "vitest";
import { language, say } from "../../src/language/language";
import type { Proof } from "../../src/trace/source";
import { mapKindWords, proofWords } from "../../src/views/parts/proofWords";

afterEach(() => {
  language.value = "en";
});

const VERIFIED: Proof = { status: "verified", output: 1.68, kernel: 3, normaliser: 0, ulp: 2 ** -23, why: "" };

describe("a proof in words", () => {
  it("says how far the map is from the model's output, in units and relative to it", () => {
    expect(proofWords(VERIFIED, say)).toBe("verified: equals the model's output to 1.7 ulp (2e-7)");
    language.value = "zh";
    expect(proofWords(VERIFIED, say)).toBe("已验证：与模型输出一致，误差 1.7 ulp (2e-7)");
  });

  it("says only what is known", () => {
    expect(proofWords({ ...VERIFIED, ulp: null }, say)).toBe("verified: equals the model's output to 1.7 ulp");
    expect(proofWords({ ...VERIFIED, ulp: 0 }, say)).toBe("verified: equals the model's output to 1.7 ulp");
    expect(proofWords({ ...VERIFIED, output: 0 }, say)).toBe("verified: equals the model's output to 0 ulp");
    expect(proofWords({ ...VERIFIED, output: null }, say)).toBe("verified: equals the model's kernel to 3 ulp (4e-7)");
    expect(proofWords({ ...VERIFIED, output: null, kernel: null }, say)).toBe("verified");
  });

  it("says why a map is not verified", () => {
    const none = { ...VERIFIED, output: null, kernel: null };
    expect(proofWords({ ...none, status: "unverified", why: "dropout was on" }, say)).toBe("unverified: dropout was on");
    expect(proofWords({ ...none, status: "refused", why: "it differs" }, say)).toBe("verification failed: it differs");
    expect(proofWords({ ...none, status: "unverified" }, say)).toBe("unverified");
    expect(proofWords({ ...none, status: "unverified", why: "x".repeat(9000) }, say).length).toBeLessThan(500);
    language.value = "zh";
    expect(proofWords({ ...none, status: "unverified" }, say)).toBe("未验证");
  });
});

describe("how a map came about", () => {
  it.each([
    ["computed", "computed from q and k", "由 q 和 k 计算"],
    ["stored", "stored weights", "存储的权重"],
    ["implied", "implied by the approximation", "由近似方法推得"],
    ["merged from computed", "computed from q and k", "由 q 和 k 计算"],
    ["toString", "toString", "toString"],
  ])("%s", (how, en, zh) => {
    expect(mapKindWords(how, say)).toBe(en);
    language.value = "zh";
    expect(mapKindWords(how, say)).toBe(zh);
  });
});
