/** Refuses requests that break the rules of their protos (buf/validate/validate.proto). */
import { createValidator, type Validator } from "@bufbuild/protovalidate";
import type { Interceptor } from "@connectrpc/connect";
import { createValidateInterceptor } from "@connectrpc/validate";

/**
 * Creates a validator that uses the platform's regular expressions, because RE2 in JavaScript is many times
 * slower. Callers cannot choose patterns: these come from protos, and must mean the same to both engines.
 */
export function createFastValidator(): Validator {
  const expressions = new Map<string, RegExp>();
  const toExpression = (pattern: string): RegExp => new RegExp(pattern, "u");
  return createValidator({
    regexMatch: (pattern, text) => expressions.getOrInsertComputed(pattern, toExpression).test(text),
  });
}

/** Shared by all servers of a process, because compiling the rules of one message takes milliseconds. */
const sharedValidator = createFastValidator();

/** The patterns in our protos, in words. */
const patterns: Readonly<Record<string, string>> = {
  "^[^\\x00-\\x1f\\x7f-\\x9f]*$": "must not contain control characters",
  "^([^\\x00-\\x1f\\x7f-\\x9f]{0,255}|(name|user)/[^\\x00-\\x1f\\x7f-\\x9f]*)$":
    "must not contain control characters, and an ID must have at most 255 characters",
  "^[A-Za-z0-9_./-]+$": "may contain only the characters A-Z a-z 0-9 - _ . /",
  "^[A-Za-z0-9][A-Za-z0-9_./-]*$":
    "must begin with a letter or digit, and contain only the characters A-Z a-z 0-9 - _ . /",
  "^[A-Za-z0-9][A-Za-z0-9_./-]*=": "must have the form <label>=<value>",
  "^[A-Za-z0-9._+-]{0,64}$": "must have at most 64 characters, of A-Z a-z 0-9 . _ + -",
  "^[a-z0-9][a-z0-9-]{0,63}$": "must have 1 to 64 characters, of a-z 0-9 -, and begin with a letter or digit",
  "^[A-Za-z0-9_+-][A-Za-z0-9._+-]*(/[A-Za-z0-9_+-][A-Za-z0-9._+-]*)*$":
    "must be a path such as sensor/app.bin: segments of A-Z a-z 0-9 . _ + -, none of which begins with a dot",
  "^[^\\x00]*$": "must not contain a NUL character",
  "^(\\[[0-9A-Fa-f:.]+\\]|[0-9A-Za-z]([0-9A-Za-z.-]*[0-9A-Za-z])?):[1-9][0-9]{0,4}$":
    "must be a host and a port, such as gateway.example.com:51820, 192.0.2.1:51820 or [2001:db8::1]:51820",
  "^0x[0-9a-fA-F]{40}$": "must be an address: 0x and 40 hexadecimal digits",
  "^[0-9a-fA-F]{64}$": "must be 64 hexadecimal digits",
  "^[0-9a-f]{64}$": "must be 64 lower-case hexadecimal digits",
  "^[A-Za-z]+=[^\\x00-\\x1f\\x7f-\\x9f]+$": "must have the form CN=release,O=Example (RFC 4514)",
  "^([*][.])?[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?([.][A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$":
    "must be a host name of ASCII letters, such as example.com; others have a form that begins with xn--",
  "^[0-9A-Fa-f:.]{2,45}$": "must be an IPv4 or IPv6 address",
  "^[!-?A-~]+@[!-?A-~]+$": "must be an email address of ASCII characters, such as ada@example.com",
  "^[A-Za-z][A-Za-z0-9+.-]*:[!-~]+$": "must be an absolute URI, such as https://example.com/release",
};

/** Describes a broken rule in words if its own message is terse or shows a regular expression. */
export function describeRule(message: string): string {
  if (message === "value is required") return "is missing";
  const pattern = /^does not match regex pattern `(.*)`$/.exec(message)?.[1];
  return (pattern !== undefined && patterns[pattern]) || message;
}

/**
 * Checks requests, and stream messages as they arrive.
 *
 * @throws ConnectError with the violations
 */
export function validationInterceptor(): Interceptor {
  return createValidateInterceptor({ validator: sharedValidator });
}
