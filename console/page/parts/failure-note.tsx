/** Shows a failure: its reason for programs, and its message for people. */
import type { Failure } from "../failure.ts";

export function FailureNote({
  failure,
  isExpected = false,
}: {
  readonly failure: Failure;
  readonly isExpected?: boolean;
}) {
  return (
    <div class={isExpected ? "note" : "note bad"} role={isExpected ? undefined : "alert"}>
      <p>
        <strong>{failure.reason}</strong> <span class="hint">{failure.code}</span>
      </p>
      <p>{failure.message}</p>
    </div>
  );
}
