/** The address follows what is picked, and what is picked follows the address when the reader goes back or forward. */
import { batch, effect } from "@preact/signals";
import type { DrawSettings, Selection } from "../choose/choice";
import { carry, fit } from "../choose/fit";
import type { Source } from "../trace/source";
import { type AddressPlace, readAddress, writeAddress } from "./address";
import { compareWith, fitPicked, openTrace } from "./openTrace";
import { shownSource } from "./shownSource";
import type { Studio } from "./state";

const WAIT = 200; // milliseconds in which small moves become one entry; browsers refuse hundreds
const APART = 350; // pushes that come faster (a held key) replace the last one

/** Whether the reader would want to come back to where they were before. */
const isFarApart = (a: AddressPlace, b: AddressPlace): boolean =>
  a.trace !== b.trace || a.run !== b.run || a.picked.view !== b.picked.view || a.picked.layer !== b.picked.layer ||
  a.picked.head !== b.picked.head;

const sameDrawn = (a: DrawSettings, b: DrawSettings): boolean =>
  (Object.keys(a) as (keyof DrawSettings)[]).every((key) => a[key] === b[key]);

/** Keeps address and choice together until the studio goes. */
export function syncAddress(studio: Studio): void {
  const { address } = studio.host;
  const { until, choice } = studio;
  if (address === null) return;
  let before: AddressPlace | null = null; // what the address holds, or will in a moment
  let timer: ReturnType<typeof setTimeout> | null = null;
  let pushed = 0;
  let arriving = true; // the next write corrects the entry that we came to

  const flush = (): void => {
    if (timer === null) return;
    clearTimeout(timer);
    timer = null;
    if (before !== null) address.write(writeAddress(before), false);
  };
  choice.watch(() => {
    const place: AddressPlace = {
      trace: studio.trace.value, run: studio.run.value, other: studio.otherTrace.value,
      picked: choice.picked.value, drawn: choice.drawn.value,
    };
    if (!studio.started.value || studio.source.value === null) return;
    const known = before;
    if (known !== null && writeAddress(place) === writeAddress(known)) return;
    const now = Date.now();
    if (known !== null && !arriving && isFarApart(known, place) && now - pushed > APART) {
      flush();
      pushed = now;
      before = place;
      address.write(writeAddress(place), true);
      return;
    }
    before = place;
    arriving = false;
    if (known === null) address.write(writeAddress(place), false);
    else timer ??= setTimeout(flush, WAIT);
  }, until);

  let heard = "";
  address.listen(() => {
    const hash = address.read();
    if (arriving && hash === heard) return; // a browser tells of the same step twice
    heard = hash;
    const place = readAddress(hash);
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (before !== null && writeAddress(place) === writeAddress(before)) return;
    arriving = true;
    void arrive(studio, place).then(() => (arriving = false));
  }, until);
  until.addEventListener("abort", () => timer !== null && clearTimeout(timer), { once: true });
}

async function arrive(studio: Studio, place: AddressPlace): Promise<void> {
  const { choice } = studio;
  const info = studio.source.value?.info;
  batch(() => {
    if (!sameDrawn(place.drawn, choice.drawn.value)) choice.drawn.value = place.drawn;
    const here = place.trace === "" || (place.trace === studio.trace.value && place.run === studio.run.value);
    if (here && info !== undefined) choice.picked.value = fitPicked(place.picked, info);
  });
  if (place.other !== studio.otherTrace.value) void compareWith(studio, place.other);
  if (place.trace !== "" && (place.trace !== studio.trace.value || place.run !== studio.run.value))
    await openTrace(studio, place.trace, place.run, place.picked);
}

/** Corrects whatever a view or a key picks that what is seen does not have. */
export function keepChoiceInside(studio: Studio): void {
  let before: Selection = studio.choice.picked.peek();
  let seen: Source | null = null;
  const stop = effect(() => {
    const source = shownSource(studio), picked = studio.choice.picked.value;
    if (source === null) return;
    const inside = source === seen ? carry(picked, before, source.info) : fit(picked, source.info);
    before = inside;
    seen = source;
    if (inside !== picked) studio.choice.picked.value = inside;
  });
  studio.until.addEventListener("abort", stop, { once: true });
}
