/** The values of a form's fields, as the reader types them. */
import { useState } from "preact/hooks";

export interface FormState<Name extends string> {
  readonly values: Readonly<Record<Name, string>>;
  /** The properties of a field: its value, and the handler of a new one. */
  bind(name: Name): { readonly value: string; readonly onChange: (value: string) => void };
}

/** @param initial the value that each field starts with */
export function useForm<Name extends string>(initial: Readonly<Record<Name, string>>): FormState<Name> {
  const [values, setValues] = useState(initial);
  return {
    values,
    bind: (name) => ({
      value: values[name],
      onChange: (value) => setValues((before) => ({ ...before, [name]: value })),
    }),
  };
}
