/** Fields of forms, each with its label. */
import { useId } from "preact/hooks";

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

interface TextFieldProps extends FieldProps {
  readonly autocomplete?: string;
}

export function TextField({ label, value, onChange, autocomplete = "off" }: TextFieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="text"
        value={value}
        autocomplete={autocomplete}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    </div>
  );
}

export function PasswordField({ label, value, onChange }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="password"
        value={value}
        autocomplete="current-password"
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    </div>
  );
}

/** A whole number of 0 or more. */
export function NumberField({ label, value, onChange }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="number"
        min={0}
        value={value}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    </div>
  );
}

interface ChoiceProps extends FieldProps {
  readonly options: readonly string[];
}

export function Choice({ label, value, onChange, options }: ChoiceProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map((option) => (
          <option key={option} value={option}>
            {option}
          </option>
        ))}
      </select>
    </div>
  );
}
