/** A button that lets the reader choose a file. */
import { useRef } from "preact/hooks";

interface FilePickerProps {
  readonly words: string;
  readonly accept?: string;
  readonly onFile: (file: File) => void;
}

export function FilePicker({ words, accept, onFile }: FilePickerProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" onClick={() => input.current?.click()}>{words}</button>
      <input
        ref={input} type="file" hidden tabIndex={-1} aria-label={words} {...(accept === undefined ? {} : { accept })}
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          event.currentTarget.value = ""; // the same file may be chosen again
          if (file) onFile(file);
        }}
      />
    </>
  );
}
