/** Steps of a training that are open; the last few are kept, so that moving to and fro asks once. */
import type { Server } from "../../hosts/server";
import type { Source } from "../../trace/source";

const MOST = 12;

/** Opens a step, or gives the one that is open. One that failed is asked again. */
export function stepSources(server: Server): (id: string, step: number, example: number) => Promise<Source> {
  const held = new Map<string, Promise<Source>>();
  return (id, step, example) => {
    const name = JSON.stringify([id, step, example]);
    const found = held.get(name) ?? server.openTraining(id, step, example);
    held.delete(name);
    held.set(name, found); // lately used
    found.catch(() => { if (held.get(name) === found) held.delete(name); });
    for (const old of held.keys()) if (held.size > MOST) held.delete(old);
    return found;
  };
}
