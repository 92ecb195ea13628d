/** Form fields, each with a label. */
import type { ComponentChildren, InputHTMLAttributes } from "preact";
import { useUniqueId } from "../unique-id.ts";

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** @param children creates the control, given the id that the label refers to */
function Field({
  label,
  isWide = false,
  children,
}: {
  readonly label: string;
  readonly isWide?: boolean;
  readonly children: (id: string) => ComponentChildren;
}) {
  const id = useUniqueId();
  return (
    <div class={isWide ? "field wide" : "field"}>
      <label for={id}>{label}</label>
      {children(id)}
    </div>
  );
}

interface TextFieldProps extends FieldProps {
  /** Attributes that differ from a plain text input. */
  readonly attributes?: InputHTMLAttributes<HTMLInputElement>;
}

export function TextField({ label, value, onChange, attributes = { type: "text" } }: TextFieldProps) {
  return (
    <Field label={label}>
      {(id) => (
        <input
          autocomplete="off"
          {...attributes}
          id={id}
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

interface ChoiceProps extends FieldProps {
  readonly options: readonly string[];
}

export function Choice({ label, value, onChange, options }: ChoiceProps) {
  return (
    <Field label={label}>
      {(id) => (
        <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          {options.map((option) => (
            <option key={option} value={option}>
              {option}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

const all = "All";

/** An optional choice; its value is an empty string if nothing is chosen. */
export function Filter({ value, onChange, options, ...field }: ChoiceProps) {
  return (
    <Choice
      {...field}
      value={value || all}
      onChange={(chosen) => onChange(chosen === all ? "" : chosen)}
      options={[all, ...options]}
    />
  );
}

/** A multi-line text. */
export function TextArea({ rows, ...field }: FieldProps & { readonly rows: number }) {
  return (
    <Field label={field.label} isWide>
      {(id) => (
        <textarea
          id={id}
          rows={rows}
          value={field.value}
          spellcheck={false}
          autocomplete="off"
          onInput={(event) => field.onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** Input attributes. */
export const ofNumber = { type: "number", min: 0 } as const;
export const ofTime = { type: "datetime-local" } as const;
export const ofPassword = { type: "password", autocomplete: "current-password" } as const;
