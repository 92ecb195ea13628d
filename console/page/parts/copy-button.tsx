/** Copies a text to the clipboard, and says so. */
import { useState } from "preact/hooks";

interface CopyButtonProps {
  readonly text: string;
  /** Names the text for a reader who cannot see where the button is: "signature". */
  readonly what: string;
  /** Shows the name to all readers, where a page has several buttons close to each other. */
  readonly isNamed?: boolean;
}

export function CopyButton({ text, what, isNamed = false }: CopyButtonProps) {
  const [said, setSaid] = useState("");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied");
    } catch {
      // Browsers provide a clipboard only on secure origins, and may ask the reader.
      setSaid("Your browser does not allow copying");
    }
  };
  return (
    <span class="copy">
      <button type="button" onClick={() => void copy()} onBlur={() => setSaid("")}>
        Copy<span class={isNamed ? undefined : "unseen"}> {what}</span>
      </button>
      <span role="status" class="hint">
        {said}
      </span>
    </span>
  );
}
