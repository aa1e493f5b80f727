/** Whether something from outside is an object with names, neither null nor a list. */
export const isObject = (given: unknown): given is Record<string, unknown> =>
  typeof given === "object" && given !== null && !Array.isArray(given);
