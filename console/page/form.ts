/** Form field values as the reader types them. */
import { useState } from "preact/hooks";

export interface FormState<Name extends string> {
  readonly values: Readonly<Record<Name, string>>;
  /** A field's value and change handler. */
  bind(name: Name): { readonly value: string; readonly onChange: (value: string) => void };
  /** Restores the initial values. */
  clear(): void;
}

/** @param initial each field's initial value */
export function useForm<Name extends string>(initial: Readonly<Record<Name, string>>): FormState<Name> {
  const [values, setValues] = useState(initial);
  return {
    values,
    clear: () => setValues(initial),
    bind: (name) => ({
      value: values[name],
      onChange: (value) => setValues((before) => ({ ...before, [name]: value })),
    }),
  };
}
