/** How a layer's map came about, and whether it is what the model used, in words. Only here are the states named. */
import type { Key, Say } from "../../language/language";
import type { How, Proof } from "../../trace/source";

const KINDS: Readonly<Record<How, Key>> = {
  computed: "how.computed", stored: "how.stored", implied: "how.implied",
};

/** "computed from q and k"; of a map that was merged from another, how that one came about. */
export function mapKindWords(how: string, say: Say): string {
  const kind = how.split(" ").at(-1) ?? "";
  return Object.hasOwn(KINDS, kind) ? say(KINDS[kind as How]) : how;
}

/** "1.7 ulp (2e-7)": units in the last place, and what that is of the number where the size of a unit is known. */
function errorWords(ulps: number, ulp: number | null, say: Say): string {
  const rounded = Number(ulps.toPrecision(2));
  if (ulps === 0 || ulp === null || ulp === 0) return say("proof.error.ulp", { ulps: rounded });
  return say("proof.error", { ulps: rounded, relative: (ulps * ulp).toExponential(0) });
}

/** The modules whose attention was not heard, the first few by name; "" where the trace is complete. */
export function incompleteWords(missed: readonly string[], say: Say): string {
  if (missed.length === 0) return "";
  const list = missed.slice(0, 6).map((name) => name.slice(0, 200)).join(", ");
  return missed.length > 6 ? say("proof.incomplete.more", { list, count: missed.length - 6 })
    : say("proof.incomplete", { list });
}

/** "verified: equals the model's output to 1.7 ulp (2e-7)", or why it is not. */
export function proofWords({ status, output, kernel, ulp, why }: Proof, say: Say): string {
  if (status !== "verified") {
    const words = say(status === "refused" ? "proof.refused" : "proof.unverified", { why: why.slice(0, 400) });
    return why === "" ? words.replace(/[:：]\s*$/, "") : words;
  }
  if (output !== null) return say("proof.verified.output", { error: errorWords(output, ulp, say) });
  if (kernel !== null) return say("proof.verified.kernel", { error: errorWords(kernel, ulp, say) });
  return say("proof.verified");
}
