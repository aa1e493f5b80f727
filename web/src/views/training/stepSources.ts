/** Steps of a training that are open; the last few are kept, so that moving to and fro asks once. */
import type { Server } from "../../hosts/server";
import type { Source } from "../../trace/source";

const MOST = 12;

/** Opens a step, or gives the one that is open. One that failed is asked again. */
export function stepSources(server: Server): (id: string, step: number, example: number) => Promise<Source> {
  const sources = new Map<string, Promise<Source>>();
  return (id, step, example) => {
    const name = JSON.stringify([id, step, example]);
    const source = sources.get(name) ?? server.openTraining(id, step, example);
    sources.delete(name);
    sources.set(name, source); // lately used
    source.catch(() => { if (sources.get(name) === source) sources.delete(name); });
    for (const old of sources.keys()) if (sources.size > MOST) sources.delete(old);
    return source;
  };
}
