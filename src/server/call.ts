/**
 * Runs an admitted unary call: deadline, message, interceptors and handler, answer. The protocol only defines
 * how messages, answers and failures are read and written.
 */
import type { ConnectError, ContextValues } from "@connectrpc/connect";
import { CallHeaders } from "../calls/call-headers.ts";
import { callTooSlow, requestTooSlow } from "../calls/timeout.ts";
import { type RunningCalls, UnaryCall } from "../calls/unary-call.ts";
import { toConnectError } from "../errors.ts";
import type { ByteMeter } from "../transcoding/body.ts";
import { meterKey } from "./byte-budget.ts";
import { decompress } from "./compression.ts";
import { canceled } from "./exchange.ts";
import type { ServerLimits } from "./limits.ts";
import type { ArrivingMessage, UnaryProtocol } from "./protocols/unary.ts";
import type { UnaryRpc } from "./rpcs.ts";

/** Shared by all calls on a server. */
export interface CallDeps extends Pick<ServerLimits, "maxReceiveMs" | "maxCallMs"> {
  readonly running: RunningCalls;
  /** Logs and counts a call that ended before its interceptors ran, such as one with an unreadable body. */
  readonly refused: (rpc: UnaryRpc, header: Headers, error: ConnectError, values: ContextValues) => void;
  /** Receives the errors of calls that had begun. */
  readonly onError: (error: ConnectError, values: ContextValues) => void;
}

/** A call that has been routed and admitted. */
export interface AdmittedCall extends ArrivingMessage {
  readonly protocol: UnaryProtocol;
  readonly values: ContextValues;
}

/**
 * Runs a call and answers it.
 *
 * @throws only if the answer cannot be written, which is a bug
 */
export async function runCall(deps: CallDeps, admitted: AdmittedCall): Promise<void> {
  const { exchange, form, protocol, rpc, values } = admitted;
  const call = new UnaryCall(
    {
      method: rpc.method,
      protocolName: form.protocol,
      requestMethod: exchange.method,
      url: exchange.url,
      requestHeader: new CallHeaders(exchange.headers),
      values,
    },
    deps.running,
  );
  exchange.onClose(() => {
    if (exchange.hasLeft) call.abort(canceled);
  });
  let hasBegun = false;
  try {
    const timeoutMs = protocol.readHead(admitted, call.requestHeader);
    if (timeoutMs !== undefined) call.setDeadline(timeoutMs);
    call.endWithin(deps.maxReceiveMs, () => requestTooSlow(deps.maxReceiveMs));
    const announced = protocol.readCompression(admitted);
    const meter = values.get(meterKey);
    const body = await call.waitFor(read(admitted, meter));
    const { bytes: sent, compression } = protocol.unpack(body, announced, admitted);
    let bytes = sent;
    if (compression !== undefined) {
      bytes = await call.race(decompress(compression, sent, rpc.maxBytes));
      meter?.charge(bytes.length);
    }
    const turn = meter?.takeTurn(bytes.length);
    if (turn !== undefined) await call.race(turn);
    const message = protocol.decode(bytes, admitted);
    call.endWithin(deps.maxCallMs, () => callTooSlow(deps.maxCallMs));
    hasBegun = true;
    const answer = await rpc.handle(call, message);
    const written = protocol.write(answer, call, admitted);
    void exchange.send(written instanceof Promise ? await written : written);
  } catch (thrown) {
    // Nobody reads the answer, and the interceptors have already seen the call end.
    if (exchange.isClosed) return;
    const error = toConnectError(thrown);
    if (hasBegun) deps.onError(error, values);
    else deps.refused(rpc, call.requestHeader, error, values);
    void exchange.send(protocol.writeFailure(error, call, admitted));
  } finally {
    call.finish();
  }
}

const noBytes = Buffer.alloc(0);

/** Reads the body. */
function read(request: AdmittedCall, meter: ByteMeter | undefined): PromiseWithResolvers<Buffer> {
  const { exchange, protocol } = request;
  // Check before a client that expects "100 Continue" starts to send.
  protocol.check(noBytes, Number(exchange.headers["content-length"] ?? 0), [], request);
  return exchange.readAll((piece, size, pieces) => {
    meter?.charge(piece.length);
    protocol.check(piece, size, pieces, request);
  });
}
