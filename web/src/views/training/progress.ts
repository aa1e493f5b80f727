/** How far a training is, in one line: its state, steps, best score, speed and the time that is left. Pure. */
import type { Say } from "../../language/language";
import { fourDigits } from "../../paint/digits";
import type { TrainingCard } from "../../trace/messages";

/** Hours, minutes and seconds: 1:02:05, 1:05. */
export function clockTime(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds)), two = (n: number): string => String(n).padStart(2, "0");
  const hours = Math.floor(whole / 3600), minutes = Math.floor((whole % 3600) / 60), rest = two(whole % 60);
  return hours ? `${hours}:${two(minutes)}:${rest}` : `${minutes}:${rest}`;
}

/** The parts of the line; `now` is in milliseconds since 1970. */
export function progressParts(card: TrainingCard, now: number, say: Say): string[] {
  const { state, step, total, best, speeds, ends, seconds } = card;
  const speed = speeds.at(-1)?.[1];
  return [
    say(state === "failed" ? "training.failed.run" : `training.${state}`), // the plain key is an error of this view
    say("training.progress", { step, total }),
    ...(best ? [say("training.best", { score: best.score, value: fourDigits(best.value), step: best.step })] : []),
    ...(speed === undefined ? [] : [say("training.speed", { rate: fourDigits(speed) })]),
    ...(ends === null ? [] : [say("training.left", { time: clockTime(ends - now / 1000) })]),
    ...(ends !== null || seconds <= 0 ? [] : [say("training.took", { time: clockTime(seconds) })]),
  ];
}
