/** Copies a text to the clipboard and confirms it. */
import { useState } from "preact/hooks";

interface CopyButtonProps {
  readonly text: string;
  /** Names the text for screen readers: "signature". */
  readonly what: string;
  /** Whether to show the name, where a page has several buttons close together. */
  readonly isNamed?: boolean;
}

export function CopyButton({ text, what, isNamed = false }: CopyButtonProps) {
  const [said, setSaid] = useState("");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied");
    } catch {
      // Browsers provide a clipboard only on secure origins, and may ask for permission.
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
