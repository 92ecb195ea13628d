/** Stops a stream on demand, and shows why it failed. */
import type { StreamState } from "../stream.ts";
import { FailureNote } from "./failure-note.tsx";

export function StreamControls<T>({ stream }: { readonly stream: StreamState<T> }) {
  return (
    <>
      {stream.failure && <FailureNote failure={stream.failure} />}
      {stream.status === "open" && (
        <p>
          <button type="button" onClick={stream.close}>
            Stop watching
          </button>
        </p>
      )}
    </>
  );
}
