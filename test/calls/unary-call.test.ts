/** Unary calls end once: by themselves, at their deadline, after a limit, or because they are aborted. */
import { create, type Message } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createContextValues,
  createServiceImplSpec,
  type HandlerContext,
  type Interceptor,
} from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { Health, HealthCheckRequestSchema } from "#gen/grpc/health/v1/health_pb.ts";
import { CallHeaders } from "../../src/calls/call-headers.ts";
import { composeUnary, RunningCalls, UnaryCall, type UnarySpec } from "../../src/calls/unary-call.ts";

type Check = (context: HandlerContext) => Message | Promise<Message>;

const answer = { $typeName: "grpc.health.v1.HealthCheckResponse", status: 1 } as const;

function specOf(check: Check): UnarySpec {
  const implementation = { check: (_req: unknown, context: HandlerContext) => check(context) as never };
  const { methods } = createServiceImplSpec<typeof Health>(Health, implementation);
  return methods.check as UnarySpec;
}

function startCall(running = new RunningCalls(undefined)): UnaryCall {
  const requestHeader = new CallHeaders({ "x-given": "1" });
  const request = { method: Health.method.check, protocolName: "test", requestMethod: "POST", url: "/" };
  return new UnaryCall({ ...request, requestHeader, values: createContextValues() }, running);
}

function run(call: UnaryCall, check: Check, interceptors: Interceptor[] = []): Promise<Message> {
  return composeUnary(specOf(check), interceptors)(call, create(HealthCheckRequestSchema));
}

const never = (): Promise<Message> => new Promise(() => {});

describe("a unary call", () => {
  it("whose deadline passed while the event loop was busy does not reach its handler", async () => {
    const call = startCall();
    call.setDeadline(1);
    const untilMs = performance.now() + 10;
    while (performance.now() < untilMs);
    // The message has been read; from here on, the handler's time counts.
    call.endWithin(30_000, () => new Error("too slow"));
    let calls = 0;
    const answered = run(call, () => {
      calls += 1;
      return answer;
    });
    await expect(answered).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    expect(calls).toBe(0);
  });

  it("runs its interceptors in order around its handler", async () => {
    const trace: string[] = [];
    const note =
      (name: string): Interceptor =>
      (next) =>
      async (req) => {
        trace.push(`${name} before`);
        const res = await next(req);
        trace.push(`${name} after`);
        return res;
      };
    await run(startCall(), () => answer, [note("outer"), note("inner")]);
    expect(trace).toEqual(["outer before", "inner before", "inner after", "outer after"]);
  });

  it("passes an interceptor's replacements to its handler, and otherwise its own signal", async () => {
    const call = startCall();
    const ending = new AbortController();
    for (const replaced of [{ signal: ending.signal }, {}]) {
      const replace: Interceptor = (next) => (req) =>
        req.stream ? next(req) : next({ ...req, header: new Headers({ "x-given": "2" }), ...replaced });
      let seen: unknown;
      const check = ({ requestHeader, signal }: HandlerContext): Message => {
        seen = [requestHeader.get("x-given"), signal];
        return answer;
      };
      await run(call, check, [replace]);
      expect(seen).toEqual(["2", replaced.signal ?? call.signal]);
    }
  });

  it("sends the headers that an interceptor adds to an answer", async () => {
    const call = startCall();
    const replace: Interceptor = (next) => async (req) => ({
      ...(await next(req)),
      header: new Headers({ "x-added": "1" }),
    });
    await run(call, () => answer, [replace]);
    expect([...call.responseHeader]).toEqual([["x-added", "1"]]);
  });

  it("ends when aborted, even if its handler does not", async () => {
    const call = startCall();
    const running = run(call, never);
    const reason = new ConnectError("gone", Code.Canceled);
    call.abort(reason);
    await expect(running).rejects.toBe(reason);
    expect([call.signal.aborted, call.signal.reason]).toEqual([true, reason]);
    // A handler that has yet to run does not run.
    await expect(run(call, never)).rejects.toBe(reason);
  });

  it("ends at its caller's deadline if that comes before the limit", async () => {
    const call = startCall();
    call.setDeadline(20);
    call.endWithin(60_000, () => new Error("limit"));
    await expect(run(call, never)).rejects.toMatchObject({ code: Code.DeadlineExceeded });
    expect(call.signal.reason).toMatchObject({ code: Code.DeadlineExceeded });
  });

  it("ends at the limit if that comes before the deadline", async () => {
    const call = startCall();
    call.setDeadline(60_000);
    call.endWithin(20, () => new Error("limit"));
    await expect(run(call, never)).rejects.toThrow("limit");
  });

  it("ends at its most recent limit, whether earlier or later than the previous one", async () => {
    const startedMs = performance.now();
    const [later, earlier] = [startCall(), startCall()];
    later.endWithin(20, () => new Error("first"));
    later.endWithin(100, () => new Error("last"));
    earlier.endWithin(60_000, () => new Error("first"));
    earlier.endWithin(20, () => new Error("last"));
    await expect(run(earlier, never)).rejects.toThrow("last");
    await expect(run(later, never)).rejects.toThrow("last");
    expect(performance.now() - startedMs).toBeGreaterThan(95);
  });

  it("has no limit if the most recent one is Infinity", async () => {
    const call = startCall();
    call.endWithin(20, () => new Error("limit"));
    call.endWithin(Number.POSITIVE_INFINITY, () => new Error("limit"));
    const answered = run(call, () => new Promise((resolve) => setTimeout(() => resolve(answer), 60)));
    await expect(answered).resolves.toMatchObject({ status: 1 });
  });

  it("ends at once if its deadline has already passed", () => {
    const call = startCall();
    call.setDeadline(-1);
    call.endWithin(60_000, () => new Error("limit"));
    expect(call.signal.aborted).toBe(true);
  });

  it("does not end a second time", () => {
    const call = startCall();
    call.finish();
    call.abort(new Error("late"));
    expect(call.signal.reason).toEqual(new Error("the call has ended"));
  });
});

describe("running calls on a stopping server", () => {
  it("end, and finished ones do not", () => {
    const stop = new AbortController();
    const running = new RunningCalls(stop.signal);
    const [finished, other] = [startCall(running), startCall(running)];
    const signals = [finished.signal, other.signal];
    finished.finish();
    stop.abort("the server stops");
    expect(signals.map(({ reason }) => reason)).toEqual([
      new Error("the call has ended"),
      "the server stops",
    ]);
  });
});
