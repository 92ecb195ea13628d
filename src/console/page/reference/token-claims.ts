/** Reads the claims of a pasted token. The server decides whether the token is valid. */
import { parseJson } from "./request.ts";

/** Claims of a token (RFC 7519, section 4.1). */
export interface TokenClaims {
  /** At most 60 characters; "a token" if the token has no subject. */
  readonly subject: string;
  /** Undefined if the token does not say. */
  readonly expiresAt: Date | undefined;
}

/** Reads a compact JWS. Unreadable claims count as absent. */
export function readClaims(token: string): TokenClaims {
  const claims = readPayload(token);
  const sub = typeof claims === "object" && claims !== null && "sub" in claims ? claims.sub : undefined;
  const exp = typeof claims === "object" && claims !== null && "exp" in claims ? claims.exp : undefined;
  return {
    subject: typeof sub === "string" && sub !== "" ? sub.slice(0, 60) : "a token",
    // Beyond this, a Date has no text (ECMA-262, section 21.4.1.1).
    expiresAt: typeof exp === "number" && Math.abs(exp) <= 8.64e12 ? new Date(exp * 1000) : undefined,
  };
}

function readPayload(token: string): unknown {
  const payload = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
  try {
    return parseJson(new TextDecoder().decode(Uint8Array.from(atob(payload), (char) => char.charCodeAt(0))));
  } catch {
    return undefined;
  }
}
