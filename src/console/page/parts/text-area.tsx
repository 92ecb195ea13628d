/** A field for a text of more than one line, with its label. */
import { Field } from "./fields.tsx";

interface TextAreaProps {
  readonly label: string;
  readonly value: string;
  readonly rows: number;
  readonly onChange: (value: string) => void;
}

export function TextArea({ label, value, rows, onChange }: TextAreaProps) {
  return (
    <Field label={label} isWide>
      {(id) => (
        <textarea
          id={id}
          rows={rows}
          value={value}
          spellcheck={false}
          autocomplete="off"
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
