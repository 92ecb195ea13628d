/** The field that narrows the list of calls. The key "/" goes to it, and Enter opens the first call. */
import { useEffect, useRef } from "preact/hooks";
import { useUniqueId } from "../unique-id.ts";

interface SearchFieldProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly onEnter: () => void;
}

export function SearchField({ value, onChange, onEnter }: SearchFieldProps) {
  const id = useUniqueId();
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
    <search class="ref-search">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onEnter();
        }}
      >
        <label class="unseen" for={id}>
          Search calls
        </label>
        <input
          ref={field}
          id={id}
          type="search"
          placeholder="Search calls   /"
          autocomplete="off"
          spellcheck={false}
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") onChange("");
          }}
        />
      </form>
    </search>
  );
}
