/** Work that a page does on demand, such as loading a list or making a change. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Caller } from "./caller.ts";
import { createCaller } from "./calls.ts";
import { type Failure, toFailure } from "./failure.ts";

export interface Task {
  readonly isRunning: boolean;
  /** Why the latest run failed. */
  readonly failure: Failure | undefined;
  /**
   * Runs the work and shows its result. A newer run supersedes an older one, whose result is dropped.
   *
   * @param show receives the result; it is not called after the component has unmounted
   */
  run<T>(work: (caller: Caller) => Promise<T>, show: (result: T) => void): Promise<void>;
}

const idle = { isRunning: false, failure: undefined };

export function useTask(): Task {
  const [state, setState] = useState<Pick<Task, "isRunning" | "failure">>(idle);
  const newest = useRef<symbol | undefined>(undefined);
  useEffect(
    () => () => {
      newest.current = undefined;
    },
    [],
  );
  const run: Task["run"] = async (work, show) => {
    const own = Symbol();
    newest.current = own;
    setState({ isRunning: true, failure: undefined });
    try {
      const result = await work(createCaller());
      if (newest.current !== own) return;
      setState(idle);
      show(result);
    } catch (thrown) {
      if (newest.current === own) setState({ isRunning: false, failure: toFailure(thrown) });
    }
  };
  return { ...state, run };
}
