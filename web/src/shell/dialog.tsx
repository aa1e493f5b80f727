/** A dialog of the browser's own: it keeps the focus inside, closes on Escape and gives the focus back. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { say } from "../language/language";

interface DialogProps {
  readonly open: boolean;
  readonly name: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

export function Dialog({ open, name, onClose, children }: DialogProps) {
  return open ? <OpenDialog name={name} onClose={onClose}>{children}</OpenDialog> : null;
}

function OpenDialog({ name, onClose, children }: Omit<DialogProps, "open">) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = box.current!;
    const scope = dialog.getRootNode() as Document | ShadowRoot;
    const before = scope.activeElement as HTMLElement | null;
    if (!dialog.open) dialog.showModal?.();
    return () => {
      dialog.close?.();
      before?.focus?.();
    };
  }, []);
  return (
    <dialog
      ref={box} aria-label={name} onClose={onClose}
      onCancel={(event) => { event.preventDefault(); onClose(); }}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        event.stopPropagation();
        onClose();
      }}
      onClick={(event) => { if (event.target === box.current) onClose(); }}
    >
      <div class="sheet">
        <header>
          <h1>{name}</h1>
          <button
            type="button" class="quiet" aria-label={say("shell.close")} title={say("shell.close")} onClick={onClose}
          >
            ×
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
