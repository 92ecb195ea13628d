/** A value shared by components but stored outside them. */
import { useEffect, useState } from "preact/hooks";

export interface SharedValue<T> {
  get(): T;
  set(next: T): void;
  /** Subscribes to changes. */
  watch(listener: () => void): void;
  /** The value, for a component that shows it. */
  use(): T;
}

/** @param read returns the initial value on first use */
export function shareValue<T>(read: () => T): SharedValue<T> {
  const listeners = new Set<() => void>();
  let current: { readonly value: T } | undefined;
  const get = (): T => {
    current ??= { value: read() };
    return current.value;
  };
  return {
    get,
    set: (value) => {
      current = { value };
      for (const listener of listeners) listener();
    },
    watch: (listener) => void listeners.add(listener),
    use: () => {
      const [shown, setShown] = useState(get);
      useEffect(() => {
        const show = (): void => setShown(get);
        listeners.add(show);
        show();
        return () => void listeners.delete(show);
      }, []);
      return shown;
    },
  };
}
