/**
 * Refuses unary calls by their request head while the server is full. Each form of the refusal is rendered
 * once, so a refusal costs little more than the stream that carries it.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import { CallHeaders } from "../calls/call-headers.ts";
import type { RestStyle } from "../calls/service-profile.ts";
import type { Transcoder } from "../transcoding/transcoder.ts";
import { nameAddress } from "./admission.ts";
import { type AnswerPace, answerInTurn } from "./answer-pace.ts";
import type { CallsInProgress } from "./calls-in-progress.ts";
import type { ReadClient } from "./client-address.ts";
import type { Exchange } from "./exchange.ts";
import { toNodeHeaders } from "./metadata.ts";
import { renderFailure } from "./protocols/failures.ts";
import type { CallForm } from "./protocols/form.ts";
import { type RequestIds, requestIdHeader } from "./request-ids.ts";
import { type Destination, formOf } from "./route.ts";
import type { UnreadResponses } from "./unread-responses.ts";

export interface FullServerDeps {
  readonly calls: CallsInProgress;
  readonly transcoder: Pick<Transcoder, "renderFailure">;
  readonly readClient: ReadClient;
  readonly pace: AnswerPace;
  /** Watches refusals that clients do not read. */
  readonly unread: UnreadResponses;
  readonly requestIds: RequestIds;
  /** Counts a refused call. */
  readonly onRefusal: (method: DescMethod) => void;
}

export interface FullServer {
  /** @returns whether it has answered the exchange */
  refuse(exchange: Exchange, destination: Destination, method: DescMethod): boolean;
}

interface Refusal {
  readonly status: number;
  readonly headers: ReturnType<typeof toNodeHeaders>;
  readonly body: Uint8Array | undefined;
}

/** Milliseconds of event-loop time per refusal on a slow core, including reading the request. */
const refusalMs = 0.1;

/** Maximum cached forms: each has a media type that clients choose. */
const maxForms = 100;

export function createFullServer(deps: FullServerDeps): FullServer {
  const { calls, transcoder, readClient, pace, unread, requestIds } = deps;
  const refusals = new Map<CallForm | RestStyle, Refusal>();

  const render = (exchange: Exchange, destination: Destination): Refusal => {
    const form = formOf(destination);
    const isRest = destination.kind === "rest" && form.protocol === "rest";
    const key = (isRest && destination.route?.match.route.style) || form;
    const known = refusals.get(key);
    if (known !== undefined) return known;
    const error = calls.fullRefusal;
    const answer = renderFailure(form, error, () => transcoder.renderFailure(error, exchange));
    const body = answer.body instanceof Uint8Array ? answer.body : undefined;
    const refusal = { status: answer.status, headers: toNodeHeaders(answer.headers), body };
    if (refusals.size < maxForms) refusals.set(key, refusal);
    return refusal;
  };

  return {
    refuse(exchange, destination, method) {
      if (!calls.isCrowded() || method.methodKind !== "unary") return false;
      const name = (): string => nameAddress(readClient(exchange));
      if (!calls.isFullFor(method, name)) return false;
      deps.onRefusal(method);
      const { status, headers: shared, body } = render(exchange, destination);
      const send = (): void => {
        // Created only now, because thousands may be waiting.
        const headers = new CallHeaders(shared);
        headers.set(requestIdHeader, requestIds.choose(exchange.headers[requestIdHeader]));
        if (body !== undefined) {
          const watched = unread.watch(exchange);
          exchange.onClose(() => watched.leave());
        }
        exchange.send({ status, headers, body });
      };
      answerInTurn(pace, exchange, { costMs: refusalMs, client: name, send });
      return true;
    },
  };
}
