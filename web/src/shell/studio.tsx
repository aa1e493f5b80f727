/** The frame around the views: bar, tabs, side, view, details, foot. */
import { useEffect, useState } from "preact/hooks";
import { VIEW } from "../views";
import { currentView } from "./availableViews";
import { Bar } from "./bar";
import { Foot } from "./foot";
import { Help } from "./help";
import { say } from "../language/language";
import { openFile } from "./openTrace";
import { Panel } from "./panel";
import { Progress } from "./run";
import { Runs } from "./runs";
import { Side } from "./side";
import { ScreenReaderStatus } from "./screenReader";
import { Stage } from "./stage";
import type { Studio } from "./state";
import { Empty, Notices, Toasts } from "./notices";
import { Tabs } from "./tabs";
import { dropPicture } from "./takePicture";

export function Frame({ studio }: { studio: Studio }) {
  const [over, setOver] = useState(false);
  const source = studio.source.value;
  const drop = (event: DragEvent): void => {
    setOver(false);
    const file = event.dataTransfer?.files[0];
    if (file === undefined) return;
    event.preventDefault();
    if (dropPicture(studio, file)) return;
    void openFile(studio, file, VIEW[currentView(studio)].pairs ? "compare" : "open");
  };
  const drag = (event: DragEvent): void => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    setOver(true);
  };
  return (
    <div
      class="frame" data-drawer={studio.drawer.value} onDragOver={drag} onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <Bar studio={studio} />
      <Progress studio={studio} />
      <Notices studio={studio} />
      {source === null ? <Empty studio={studio} /> : (
        <>
          <Tabs studio={studio} />
          <div class="middle">
            <Side studio={studio} />
            <Stage studio={studio} />
            <Panel studio={studio} />
            <Shade studio={studio} />
          </div>
          <Foot studio={studio} />
        </>
      )}
      <Help studio={studio} />
      <Runs studio={studio} />
      {studio.dialog.value === "" && <Toasts studio={studio} />}
      <ScreenReaderStatus studio={studio} />
      {over && <div class="drop" aria-hidden="true">{say(studio.host.server === null ? "shell.drop" : "shell.dropAny")}</div>}
    </div>
  );
}

/** What lies behind an open drawer; a click closes it. */
function Shade({ studio }: { studio: Studio }) {
  const open = studio.drawer.value;
  useEffect(() => {
    if (open !== "") studio.choice.point(null);
  }, [open]);
  return open === "" ? null : <div class="shade" onClick={() => (studio.drawer.value = "")} />;
}
