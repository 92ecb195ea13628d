/** What drivers are asked to do: calls in JSON, and what they come to. */

/** One message in JSON. */
export type JsonRequest = Readonly<Record<string, unknown>>;

/** One call. */
export interface Call {
  /** Such as "pqc.PqcService". */
  readonly service: string;
  readonly method: string;
  /**
   * The REST method and path, written down from the contract and not read from the protos; a {name} in the path
   * stands for that field of the request. Missing for a call that REST does not have.
   */
  readonly rest?: string;
  /** One message; a list of them for a call that sends a stream. */
  readonly request: JsonRequest | readonly JsonRequest[];
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the call carries a token of the server. */
  readonly withToken?: boolean;
}

/** What a call came to: an answer as JSON, or a refusal. */
export type Outcome =
  | { readonly answer: unknown }
  | { readonly refusal: { readonly code: string; readonly reason: string | undefined } };

/** A call as REST has it. */
export interface RestCall {
  readonly method: string;
  readonly url: string;
  /** JSON; undefined for methods without a body. */
  readonly body: string | undefined;
}

/** Puts the fields of a request into the path, and the others into the body or the query. */
export function toRest(baseUrl: string, { rest, request, method: rpc }: Call): RestCall {
  if (rest === undefined) throw new Error(`REST has no call for ${rpc}`);
  const [method = "", template = ""] = rest.split(" ");
  const fields = new Map(Object.entries(request));
  const path = template.replace(/\{(\w+)\}/g, (_, name) => {
    const value = String(fields.get(name));
    fields.delete(name);
    return encodeURIComponent(value);
  });
  const others = Object.fromEntries(fields);
  if (method === "POST") return { method, url: baseUrl + path, body: JSON.stringify(others) };
  const query = String(new URLSearchParams(others as Record<string, string>));
  return { method, url: `${baseUrl}${path}${query === "" ? "" : `?${query}`}`, body: undefined };
}

/** The messages that a call sends, one after another, as command lines take them. */
export function toJsonTexts({ request }: Call): string {
  const messages = Array.isArray(request) ? request : [request];
  return messages.map((message) => JSON.stringify(message)).join("\n");
}

/** The headers of a call, its token among them. */
export function headersOf({ headers, withToken }: Call, token: string): Readonly<Record<string, string>> {
  return { ...headers, ...(withToken && { authorization: `Bearer ${token}` }) };
}
