/** A server stream, as a component watches it. */
import type {
  DescMessage,
  DescMethodServerStreaming,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import { useEffect, useRef, useState } from "preact/hooks";
import { followCall } from "./calls.ts";
import { type Failure, toFailure } from "./failure.ts";
import { usePlace } from "./kept-pages.tsx";

/** Minimum milliseconds between two updates, so that a flood of messages does not freeze the page. */
const pauseMs = 100;

export interface StreamState<T> {
  /** "open" as soon as the call starts: a server may be silent before its first message. */
  readonly status: "closed" | "open" | "failed";
  readonly failure: Failure | undefined;
  /** The items so far, oldest first. */
  readonly items: readonly T[];
  /** Opens the stream. An open stream is closed first, and its items are dropped. */
  open<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    toItem: (message: MessageShape<O>, before: readonly T[]) => T | Promise<T>,
  ): void;
  close(): void;
}

/**
 * A stream that ends with its component. While the reader is on a different page it is closed, because
 * browsers limit connections per server; it is then read again from the start.
 *
 * @param maxItems keeps only this many of the newest items
 */
export function useStream<T>(maxItems: number): StreamState<T> {
  const [items, setItems] = useState<readonly T[]>([]);
  const [status, setStatus] = useState<StreamState<T>["status"]>("closed");
  const [failure, setFailure] = useState<Failure>();
  const controller = useRef<AbortController | undefined>(undefined);
  const seen = useRef<readonly T[]>([]);
  /** Reopens the stream; undefined unless it is open. */
  const reopen = useRef<(() => void) | undefined>(undefined);
  const { isShown } = usePlace();
  const isRead = useRef(isShown);

  const close = (): void => {
    controller.current?.abort();
    controller.current = undefined;
    reopen.current = undefined;
    // Shows items immediately that arrived before: a closed stream must no longer change.
    setItems(seen.current);
    setStatus("closed");
  };
  useEffect(() => {
    isRead.current = isShown;
    if (isShown) reopen.current?.();
    return () => controller.current?.abort();
  }, [isShown]);

  const open: StreamState<T>["open"] = (method, request, toItem) => {
    close();
    const own = new AbortController();
    controller.current = own;
    reopen.current = () => open(method, request, toItem);
    setStatus("open");
    setFailure(undefined);
    setItems([]);
    seen.current = [];
    if (!isRead.current) return;
    let isShowing = false;
    const showSoon = (): void => {
      if (isShowing) return;
      isShowing = true;
      setTimeout(() => {
        isShowing = false;
        if (controller.current === own) setItems(seen.current);
      }, pauseMs);
    };
    const follow = async (): Promise<void> => {
      for await (const message of followCall(method, request, own.signal)) {
        const item = await toItem(message, seen.current);
        if (own.signal.aborted) return;
        seen.current = [...seen.current, item].slice(-maxItems);
        showSoon();
      }
      if (own.signal.aborted) return;
      reopen.current = undefined;
      setStatus("closed");
    };
    follow().catch((thrown: unknown) => {
      if (own.signal.aborted) return;
      reopen.current = undefined;
      setFailure(toFailure(thrown));
      setStatus("failed");
    });
  };
  return { status, failure, items, open, close };
}
