/** The field that filters the list of calls. The key "/" focuses it, and Enter opens the first call. */
import { useEffect, useRef } from "preact/hooks";

interface SearchFieldProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly onEnter: () => void;
}

export function SearchField({ value, onChange, onEnter }: SearchFieldProps) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof Element && event.target.matches("input, textarea, select");
      if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      field.current?.focus();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return (
    <input
      ref={field}
      type="search"
      aria-label="Search calls"
      placeholder="Search calls   /"
      autocomplete="off"
      spellcheck={false}
      value={value}
      onInput={(event) => onChange(event.currentTarget.value)}
      onKeyDown={({ key }) => {
        if (key === "Escape") onChange("");
        if (key === "Enter") onEnter();
      }}
    />
  );
}
