/** Layers × heads as small buttons, each with a picture of its map. Only layers in sight stand in the page. */
import { useEffect, useRef, useState } from "preact/hooks";
import { stepHead, stepLayer } from "../choose/move";
import { ramp, scaleWeight } from "../paint/color";
import type { Thumbs } from "../trace/source";
import { say } from "../language/language";
import { shownOrOpenSource } from "./shownSource";
import type { Studio } from "./state";

const LEAST = 24, MOST = 40; // pixels from one button to the next
const PICTURE = 36; // pixels of a small map at most
const SMALL = 1 << 20; // weights of a head up to which its small map is drawn unasked; more would hold up the view

export function Grid({ studio, layers }: { studio: Studio; layers: readonly number[] }) {
  const box = useRef<HTMLDivElement>(null);
  const { info } = shownOrOpenSource(studio);
  const picked = studio.choice.picked.value;
  const [room, setRoom] = useState({ width: 180, height: 600, top: 0 });
  useEffect(() => {
    const element = box.current!;
    const look = (): void =>
      setRoom({ width: element.clientWidth, height: element.clientHeight, top: element.scrollTop });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    look();
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);
  const widest = Math.max(1, ...layers.map((layer) => info.layers[layer]?.shape[1] ?? 1));
  const cell = Math.min(MOST, Math.max(LEAST, Math.floor((room.width - 34) / widest)));
  const across = Math.max(1, Math.floor((room.width - 34) / cell));
  let top = 0;
  const rows = layers.map((layer) => {
    const height = Math.ceil((info.layers[layer]?.shape[1] ?? 1) / across) * cell + 6;
    const row = { layer, top, height };
    top += height;
    return row;
  });
  const here = rows.find((row) => row.layer === picked.layer);
  useEffect(() => {
    const element = box.current;
    if (!element || !here) return;
    if (here.top < element.scrollTop || here.top + here.height > element.scrollTop + element.clientHeight)
      element.scrollTop = here.top - element.clientHeight / 3;
  }, [picked.layer, across]);
  const seen = (row: { top: number; height: number }): boolean =>
    row.top + row.height > room.top - 100 && row.top < room.top + Math.max(room.height, 100) + 100;
  const key = (event: KeyboardEvent): void => {
    const [down, right] =
      { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
    if ((down === 0 && right === 0) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation(); // here arrows go from head to head
    const now = studio.choice.picked.value;
    studio.choice.pick(down ? stepLayer(now, info, down!) : stepHead(now, info, right!));
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>("[aria-pressed=true]")?.focus());
  };
  return (
    <div
      class="grid" ref={box} onKeyDown={key} style={{ "--cell": `${cell}px` }} role="group"
      aria-label={say("shell.side.title")}
    >
      {rows.map((row) => (
        <div key={row.layer} class="heads" style={{ height: `${row.height}px` }}>
          <span class="number" title={info.layers[row.layer]!.name}>{row.layer}</span>
          {seen(row) && <Heads studio={studio} layer={row.layer} />}
        </div>
      ))}
    </div>
  );
}

/** The heads of one layer. */
function Heads({ studio, layer }: { studio: Studio; layer: number }) {
  const source = shownOrOpenSource(studio);
  const { head: now, layer: there, batch } = studio.choice.picked.value;
  const [, heads, queries, keys] = source.info.layers[layer]!.shape;
  const [found, setFound] = useState<{ id: string; thumbs: Thumbs } | null>(null);
  const { id } = source.info;
  const known = found?.id === id && found.thumbs.heads === heads; // a run that grows keeps its last pictures
  const thumbs = known ? found.thumbs : null;
  const small = queries * keys > 0 && queries * keys <= SMALL;
  useEffect(() => {
    if (!small) return undefined;
    const end = new AbortController();
    const timer = setTimeout(() => {
      source.thumbs(layer, batch, PICTURE, end.signal)
        .then((came) => !end.signal.aborted && setFound({ id, thumbs: came }), () => undefined);
    }, 120); // the view goes first
    return () => {
      clearTimeout(timer);
      end.abort();
    };
  }, [source, layer, batch, small]);
  const pick = (head: number): void => {
    studio.choice.pick({ layer, head, heads: [] });
    studio.drawer.value = "";
  };
  const picked = (head: number): boolean => layer === there && head === now;
  return (
    <div class="cells">
      {Array.from({ length: heads }, (_, head) => (
        <button
          key={head} type="button" class="cell" aria-pressed={picked(head)}
          tabIndex={picked(head) || (layer !== there && head === 0) ? 0 : -1}
          title={say("shell.layer.head", { layer, head })} aria-label={say("shell.layer.head", { layer, head })}
          onClick={() => pick(head)}
          onPointerEnter={() => studio.choice.point({ layer, head })} onPointerLeave={() => studio.choice.point(null)}
        >
          {thumbs === null ? <span aria-hidden="true">{head}</span>
            : <Picture studio={studio} thumbs={thumbs} head={head} />}
        </button>
      ))}
    </div>
  );
}

/** One head, so small that only its pattern can be seen. */
function Picture({ studio, thumbs, head }: { studio: Studio; thumbs: Thumbs; head: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { dark, hatch } = studio.look.theme.value;
  const { scale } = studio.choice.drawn.value;
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    const { rows, columns, max, allowed } = thumbs;
    const colours = ramp(dark), sharp = canvas.current!.width;
    context.clearRect(0, 0, sharp, sharp);
    for (let i = 0; i < rows * columns; i++) {
      const at = head * rows * columns + i, row = Math.floor(i / columns), column = i % columns;
      const colour =
        4 * Math.min(255, Math.max(0, Math.round(255 * scaleWeight(max[at]!, scale === "rank" ? "log" : scale, 1))));
      context.fillStyle = allowed[at] === 0 ? hatch
        : `rgb(${colours[colour]},${colours[colour + 1]},${colours[colour + 2]})`;
      const x = Math.floor((column * sharp) / columns), y = Math.floor((row * sharp) / rows);
      context.fillRect(x, y, Math.ceil(((column + 1) * sharp) / columns) - x,
        Math.ceil(((row + 1) * sharp) / rows) - y);
    }
  }, [thumbs, head, dark, scale]);
  return <canvas ref={canvas} width={2 * PICTURE} height={2 * PICTURE} aria-hidden="true" />;
}
