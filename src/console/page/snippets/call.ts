/** The call that a snippet is written from. */
import type { DescMethodServerStreaming, DescMethodUnary, Message } from "@bufbuild/protobuf";

/** A call, whether it has been made or not. */
export interface SnippetCall {
  readonly method: DescMethodUnary | DescMethodServerStreaming;
  readonly request: Message;
  /** The token that was sent with the call. */
  readonly token: string | undefined;
}

/** How a snippet is written. */
export interface SnippetOptions {
  /** The origin of the server: "http://127.0.0.1:8080". */
  readonly origin: string;
  /** Leaves out the middle of long values, for reading. */
  readonly isShort?: boolean;
}

/** The environment variable from which snippets read a token, as `qsp` does. */
export const tokenVariable = "QSP_TOKEN";
/** The one from which they read a password. */
export const passwordVariable = "QSP_PASSWORD";

/** Host and port, as gRPC clients want them, and whether the connection is encrypted. */
export function readTarget(origin: string): { readonly target: string; readonly isSecure: boolean } {
  const { protocol, hostname, port } = new URL(origin);
  const isSecure = protocol === "https:";
  return { target: `${hostname}:${port || (isSecure ? "443" : "80")}`, isSecure };
}

/** Indents all lines of a text but the first. */
export function indentRest(text: string, indent: string): string {
  return text.replaceAll("\n", `\n${indent}`);
}
