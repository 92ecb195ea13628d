/** The answers of HTTP/1.1 that are not finished, by connection and in the order of their requests. */
import type http from "node:http";
import type { Socket } from "node:net";
import { LiveList } from "../calls/live-list.ts";

/** The answers of one connection. */
export interface Pipeline {
  /** Those that are not finished. */
  readonly answers: Pick<LiveList<http.ServerResponse>, "items" | "size">;
  /** The answer to the newest request. */
  readonly newest: http.ServerResponse;
  /** Whether the client has sent a request before it had the answer to an earlier one. */
  readonly isPipelined: boolean;
  /** Whether the connection ends with the newest answer. Requests that follow are not answered. */
  readonly isLast: boolean;
}

interface OwnPipeline extends Pipeline {
  readonly answers: LiveList<http.ServerResponse>;
  newest: http.ServerResponse;
  isPipelined: boolean;
  isLast: boolean;
}

/** The pipelines of a port. */
export class Http1Pipelines {
  readonly #pipelines = new Map<Socket, OwnPipeline>();

  /** The answers of all connections. */
  *answers(): Generator<http.ServerResponse> {
    for (const { answers } of this.#pipelines.values()) yield* answers.items();
  }

  /** Finds the answers of a connection; undefined before its first request and after its end. */
  find(socket: Socket): Pipeline | undefined {
    return this.#pipelines.get(socket);
  }

  /** Adds the answer to a request. It stays until it emits "close". */
  add(res: http.ServerResponse): void {
    const { socket } = res.req;
    let pipeline = this.#pipelines.get(socket);
    if (pipeline === undefined) {
      pipeline = { answers: new LiveList(), newest: res, isPipelined: false, isLast: false };
      this.#pipelines.set(socket, pipeline);
      socket.once("close", () => this.#close(socket));
    } else {
      pipeline.isPipelined ||= !pipeline.newest.writableFinished;
      pipeline.newest = res;
    }
    const place = pipeline.answers.add(res);
    res.once("close", () => place.leave());
  }

  /** Says with an answer, which is the newest, that it is the last. */
  end(res: http.ServerResponse): void {
    const pipeline = this.#pipelines.get(res.req.socket);
    if (pipeline !== undefined) pipeline.isLast = true;
    res.setHeader("connection", "close");
  }

  /**
   * Closes what is left of a connection. Node does not tell an answer whose turn has not come that its connection has
   * ended, and not even destroys it after a CONNECT: a watch would wait without end.
   */
  #close(socket: Socket): void {
    const answers = this.#pipelines.get(socket)?.answers.items() ?? [];
    this.#pipelines.delete(socket);
    for (const res of answers) {
      res.destroy();
      // One with a socket emits it itself.
      if (res.socket === null) res.emit("close");
    }
  }
}
