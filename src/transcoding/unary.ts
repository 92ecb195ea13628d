/**
 * The two ends of a unary call: its request message from path, query and body, and its answer. The server
 * runs it.
 */
import type { Message } from "@bufbuild/protobuf";
import { bodyTooLarge } from "../errors.ts";
import type { MessageLimits } from "../message-limits/structure-limits.ts";
import { type AnswerHeaders, requireJson, writeAnswer } from "./answer.ts";
import { applyValues, type FieldValue, readFieldValues } from "./binding.ts";
import { isGzip, requireMediaType } from "./body.ts";
import { bodyUnexpected, listMediaTypes, parseBody, takesRawBody } from "./body-messages.ts";
import { type FoundRoute, readForm } from "./call-context.ts";
import type { RestRequest, RestResponse } from "./http.ts";
import { requireQueryType } from "./query-method.ts";
import type { JsonForm } from "./rendering.ts";
import type { Route } from "./routes.ts";

/** The part of a request before its body. */
export interface UnaryHead extends Pick<RestRequest, "method" | "headers"> {
  /** Whether it may have a body. */
  readonly hasBody: boolean;
}

/** A unary call whose head has been read. */
export class UnaryTranscoding {
  readonly #head: UnaryHead;
  readonly #route: Route;
  readonly #limits: MessageLimits;
  readonly #values: readonly FieldValue[];
  readonly #form: JsonForm | undefined;

  /**
   * Reads everything outside the body.
   *
   * @throws BODY_TOO_LARGE (the limit applies to the query too), MEDIA_TYPE_UNSUPPORTED, NOT_ACCEPTABLE, and
   *   refusals of the path and the query
   */
  constructor(head: UnaryHead, found: FoundRoute, limits: MessageLimits) {
    const { route } = found.match;
    const { method, headers, hasBody } = head;
    if (method === "QUERY") requireQueryType(route, headers);
    const { rawQuery, form } = readForm(found);
    requireJson(headers, route);
    if (rawQuery.length > limits.maxBytes) throw bodyTooLarge(limits.maxBytes);
    this.#head = head;
    this.#route = route;
    this.#limits = limits;
    this.#form = form;
    this.#values = readFieldValues(found.match, rawQuery, limits.registry);
    if (hasBody && route.body.kind !== "none" && !takesRawBody(route))
      requireMediaType(headers, listMediaTypes(route));
  }

  /**
   * Whether the body is compressed.
   *
   * @throws ENCODING_UNSUPPORTED
   */
  get isGzip(): boolean {
    return isGzip(this.#head.headers);
  }

  /**
   * Refuses a body whose received part is already too large.
   *
   * @throws BODY_TOO_LARGE, BODY_UNEXPECTED
   */
  checkSize(size: number): void {
    if (size > this.#limits.maxBytes) throw bodyTooLarge(this.#limits.maxBytes);
    if (size > 0 && this.#route.body.kind === "none") throw bodyUnexpected();
  }

  /**
   * Builds the request message.
   *
   * @param body decompressed
   */
  read(body: Uint8Array): Message {
    const { headers, hasBody } = this.#head;
    const given = hasBody ? body : undefined;
    return applyValues(this.#route, this.#values, parseBody(this.#route, headers, given, this.#limits));
  }

  write(message: Message, headers: AnswerHeaders): Promise<RestResponse> {
    const rendering = { route: this.#route, registry: this.#limits.registry, form: this.#form };
    return writeAnswer(this.#head, message, headers, rendering);
  }
}
