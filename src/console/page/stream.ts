/** A stream of the server, as a component watches it. */
import type {
  DescMessage,
  DescMethodServerStreaming,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import { useEffect, useRef, useState } from "preact/hooks";
import { followCall } from "./calls.ts";
import { type Failure, toFailure } from "./failure.ts";

/** Between two changes of what the page shows, so that a flood of messages does not stop it. */
const pauseMs = 100;

export interface StreamState<T> {
  /** "open" from the call on: a server may be silent before its first message. */
  readonly status: "closed" | "open" | "failed";
  readonly failure: Failure | undefined;
  /** What came, oldest first. */
  readonly items: readonly T[];
  /** Opens the stream. A stream that is open is closed first, and its items are dropped. */
  open<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    toItem: (message: MessageShape<O>, before: readonly T[]) => T | Promise<T>,
  ): void;
  close(): void;
}

/** A stream that ends when its component does. @param maxItems keeps only so many of the newest items */
export function useStream<T>(maxItems = Number.POSITIVE_INFINITY): StreamState<T> {
  const [items, setItems] = useState<readonly T[]>([]);
  const [status, setStatus] = useState<StreamState<T>["status"]>("closed");
  const [failure, setFailure] = useState<Failure>();
  const controller = useRef<AbortController | undefined>(undefined);

  const close = (): void => {
    controller.current?.abort();
    controller.current = undefined;
    setStatus("closed");
  };
  useEffect(() => () => controller.current?.abort(), []);

  const open: StreamState<T>["open"] = (method, request, toItem) => {
    close();
    const own = new AbortController();
    controller.current = own;
    setStatus("open");
    setFailure(undefined);
    setItems([]);
    let seen: readonly T[] = [];
    let isShowing = false;
    const showSoon = (): void => {
      if (isShowing) return;
      isShowing = true;
      setTimeout(() => {
        isShowing = false;
        // The stream may be closed by then, but not another one open.
        if (controller.current === own || controller.current === undefined) setItems(seen);
      }, pauseMs);
    };
    const follow = async (): Promise<void> => {
      for await (const message of followCall(method, request, { signal: own.signal })) {
        seen = [...seen, await toItem(message, seen)].slice(-maxItems);
        if (own.signal.aborted) return;
        showSoon();
      }
      if (!own.signal.aborted) setStatus("closed");
    };
    follow().catch((thrown: unknown) => {
      if (own.signal.aborted) return;
      setFailure(toFailure(thrown));
      setStatus("failed");
    });
  };
  return { status, failure, items, open, close };
}
