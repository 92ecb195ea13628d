/** Unfinished HTTP/1.1 answers, by connection and in request order. */
import type http from "node:http";
import type { Socket } from "node:net";
import { LiveList } from "../calls/live-list.ts";

interface Pipeline {
  /** The unfinished answers. */
  readonly answers: LiveList<http.ServerResponse>;
  /** The answer to the newest request. */
  newest: http.ServerResponse;
  /** Whether the client has sent a request before an earlier one was answered. */
  isPipelined: boolean;
  /** Whether the connection ends with the newest answer. Later requests are not answered. */
  isLast: boolean;
}

/** The pipelines of one port. */
export class Http1Pipelines {
  readonly #pipelines = new Map<Socket, Pipeline>();

  /** The answers on all connections. */
  *answers(): Generator<http.ServerResponse> {
    for (const { answers } of this.#pipelines.values()) yield* answers.items();
  }

  /** Finds the answers of a connection; undefined before its first request and after its end. */
  find(socket: Socket): Readonly<Pipeline> | undefined {
    return this.#pipelines.get(socket);
  }

  /** Adds the answer to a request until it emits "close". */
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

  /** Marks the newest answer as the last one on its connection. */
  end(res: http.ServerResponse): void {
    const pipeline = this.#pipelines.get(res.req.socket);
    if (pipeline !== undefined) pipeline.isLast = true;
    res.setHeader("connection", "close");
  }

  /**
   * Closes the remaining answers of a connection. Node does not notify queued answers that their connection
   * has ended, and does not even destroy the connection after a CONNECT, so a watch would wait forever.
   */
  #close(socket: Socket): void {
    const answers = this.#pipelines.get(socket)?.answers.items() ?? [];
    this.#pipelines.delete(socket);
    for (const res of answers) {
      res.destroy();
      // An answer with a socket emits "close" itself.
      if (res.socket === null) res.emit("close");
    }
  }
}
