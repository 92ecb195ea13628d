/**
 * A port whose exchanges follow scripts, without a protocol or service behind it. A number in the request path selects
 * the script. The path also has the length of the body, or "cut" for a body that never becomes complete.
 */
import { setImmediate } from "node:timers/promises";
import { ConnectError } from "@connectrpc/connect";
import { Clients } from "../../src/server/clients.ts";
import type { Answer, Exchange } from "../../src/server/exchange.ts";
import { createListener } from "../../src/server/listener.ts";
import { createUnreadResponses } from "../../src/server/unread-responses.ts";
import type { AtEnd } from "../support/at-end.ts";
import { createRandom, type Random } from "./mutations.ts";

/** The byte that client bodies consist of. */
export const bodyByte = 0x62;
const answerByte = 0x61;
/** The byte of answers that must not be sent, because they are second answers. */
const secondByte = 0xee;
const secondMark = Buffer.alloc(8, secondByte);

/** What a server still holds. */
export interface Held {
  readonly exchanges: number;
  readonly connections: number;
  /** Reads of bodies that have not settled. */
  readonly reads: number;
  /** Response bodies that have not ended. */
  readonly bodies: number;
  readonly scripts: number;
}

/** Serves scripts. */
export async function startScripted(atEnd: AtEnd) {
  const faults: string[] = [];
  const held: Counts = { exchanges: 0, connections: 0, reads: 0, bodies: 0, scripts: 0 };
  let served = 0;
  const note = (what: string, error?: unknown): void =>
    void faults.push(error instanceof Error ? `${what}: ${error.stack}` : what);
  const onUncaught = (error: unknown): void => note("not caught", error);
  process.on("uncaughtException", onUncaught);
  process.on("unhandledRejection", onUncaught);
  const unread = createUnreadResponses(300, () => {}, new Clients());
  const listener = createListener({
    maxMetadataBytes: 16_384,
    maxHeaderMs: 60_000,
    maxWriteMs: 60_000,
    admitConnection: () => {
      held.connections += 1;
      return () => {
        held.connections -= 1;
      };
    },
    countAbandoned: () => true,
    unread,
    refuseBytes: () => ({ status: 400, headers: new Headers(), body: new Uint8Array() }),
    onFault: (error, target) => note(`thrown at ${target}`, error),
    onPage: (_req, res) => void res.end("a page"),
    onExchange: (exchange, toPage) => {
      const [, seed, whole] = /^\/script\/(\d+)\/(\d+|cut)$/.exec(exchange.target) ?? [];
      if (seed === undefined) {
        void exchange.send({ status: 200, headers: new Headers(), body: Buffer.from("alive\n") });
        return;
      }
      served += 1;
      const watched = unread.watch(exchange);
      exchange.onClose(() => watched.leave());
      const random = createRandom(Number(seed));
      const script = new Script(
        exchange,
        random,
        whole === "cut" ? undefined : Number(whole),
        held,
        (what, error) => note(`${what}, at ${exchange.target} over HTTP/${exchange.httpVersion}`, error),
      );
      if (random.below(12) === 0) return toPage();
      held.scripts += 1;
      script
        .run()
        .catch((error: unknown) => note(`thrown at ${exchange.target}`, error))
        .finally(() => {
          held.scripts -= 1;
        });
    },
  });
  atEnd(() => {
    process.off("uncaughtException", onUncaught);
    process.off("unhandledRejection", onUncaught);
    listener.destroy();
  });
  const { port } = await listener.listen(0, "127.0.0.1");
  return {
    port,
    findEnd: () => faults[0],
    onBytes: (bytes: Buffer): void => {
      if (bytes.includes(secondMark)) note("a second answer was sent");
    },
    held: () => ({ ...held }),
    /** Exchanges so far. */
    served: () => served,
    drain: () => listener.drain(),
  };
}

type Counts = { -readonly [Name in keyof Held]: Held[Name] };
type Note = (what: string, error?: unknown) => void;

/** Runs the script of one exchange. */
class Script {
  readonly exchange: Exchange;
  readonly random: Random;
  readonly #whole: number | undefined;
  readonly #held: Counts;
  readonly #note: Note;
  /** An exchange has one reader at a time. */
  #isReading = false;
  /** Whether part of the body was read before, or discarded. */
  #isPartlyRead = false;
  #isAnswered = false;

  constructor(exchange: Exchange, random: Random, whole: number | undefined, held: Counts, note: Note) {
    this.exchange = exchange;
    this.random = random;
    this.#whole = whole;
    this.#held = held;
    this.#note = note;
    held.exchanges += 1;
    this.#watchClose(() => {
      held.exchanges -= 1;
    });
  }

  async run(): Promise<void> {
    for (let steps = this.random.below(8); steps > 0; steps -= 1) await this.random.pick(actions)(this);
    // Some exchanges are never answered and end with their clients. Over HTTP/1.1, an exchange before bytes that are not a
    // request would stay open: Node does not report that the client has disconnected.
    if (this.random.below(6) > 0 || this.exchange.httpVersion === "1.1") await this.send();
    else this.#readOn();
    if (this.random.below(4) === 0) await this.random.pick(actions)(this);
  }

  #watchClose(closed: () => void): void {
    let times = 0;
    this.exchange.onClose(() => {
      times += 1;
      if (times > 1) this.#note("closed twice");
      if (!this.exchange.isClosed) this.#note("closed, but isClosed is false");
      if (this.exchange.hasLeft && !this.exchange.signal.aborted)
        this.#note("the client disconnected, but the signal did not abort");
      closed();
    });
  }

  async turn(): Promise<void> {
    for (let turns = 1 + this.random.below(4); turns > 0; turns -= 1) await setImmediate();
  }

  /** Makes calls that neither answer nor read. */
  look(): void {
    const { exchange, random } = this;
    switch (random.below(6)) {
      case 0:
      case 1:
        return exchange.setOwnHeaders({ vary: "origin", "x-own": "1" });
      case 2:
        return this.#watchClose(() => {});
      case 3:
        return void [exchange.pendingBytes(), exchange.arrivedBytes(), exchange.url, exchange.hasBody];
      case 4:
        return void exchange.signal.aborted;
      default:
        return void [exchange.isClosed, exchange.hasLeft];
    }
  }

  /** Node notices that an HTTP/1.1 client has disconnected only while it reads the body. */
  #readOn(): void {
    this.#isPartlyRead = true;
    this.exchange.discard();
  }

  leave(): void {
    const { exchange, random } = this;
    this.#isPartlyRead = true;
    if (random.below(3) > 0) exchange.discard();
    else exchange.drop(random.pick([undefined, "INTERNAL_ERROR", "ENHANCE_YOUR_CALM"]));
  }

  async read(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#held.reads += 1;
    const read = this.random.below(2) === 0 ? this.#readAll() : this.#readPieces();
    const done = read
      .catch((error: unknown) => {
        if (!(error instanceof ConnectError) && error !== enough) this.#note("the body failed", error);
      })
      .finally(() => {
        this.#isReading = false;
        this.#held.reads -= 1;
      });
    if (this.random.below(2) === 0) await done;
  }

  async #readAll(): Promise<void> {
    const limit = this.random.pick([Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0, 500]);
    const { promise } = this.exchange.readAll((_piece, size) => {
      if (size <= limit) return;
      this.#isPartlyRead = true;
      throw enough;
    });
    this.#judge([await promise]);
  }

  async #readPieces(): Promise<void> {
    const most = this.random.pick([Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0, 1, 3]);
    const pieces: Uint8Array[] = [];
    for await (const piece of this.exchange.pieces()) {
      pieces.push(piece);
      if (pieces.length > most) {
        this.#isPartlyRead = true;
        return;
      }
      if (this.random.below(4) === 0) await this.turn();
    }
    this.#judge(pieces);
  }

  /** Checks a body that was read as complete. */
  #judge(pieces: readonly Uint8Array[]): void {
    if (this.#whole === undefined) return this.#note("a cut body was complete");
    const body = Buffer.concat(pieces);
    if (!body.every((byte) => byte === bodyByte)) this.#note("a body has bytes that nobody sent");
    const isWhole = body.length === this.#whole;
    if (!isWhole && !this.#isPartlyRead) this.#note(`a body was complete with ${body.length} bytes`);
    this.#isPartlyRead = true;
  }

  async send(): Promise<void> {
    const { exchange, random } = this;
    const byte = this.#isAnswered ? secondByte : answerByte;
    this.#isAnswered = true;
    this.#isPartlyRead = true;
    const sent = exchange.send(this.#answer(byte));
    if (random.below(2) === 0) await sent;
    else sent?.catch((error: unknown) => this.#note("the answer failed", error));
  }

  #answer(byte: number): Answer {
    const { random } = this;
    const headers = new Headers({ "content-type": "text/plain", "x-answer": "1" });
    const whole = Buffer.alloc(random.pick([0, 1, 100, 70_000, 400_000]), byte);
    switch (random.below(8)) {
      case 0:
        return { status: random.pick([200, 204, 304, 404]), headers };
      case 1:
        return { status: 200, headers, body: whole, trailers: new Headers({ "x-trailer": "1" }) };
      case 2:
        headers.set("content-length", String(whole.length));
        return { status: 200, headers, body: whole };
      case 3:
        return { status: 200, headers, body: this.#pieces(byte), isLast: () => random.below(4) === 0 };
      case 4:
      case 5: {
        const trailers = random.pick([undefined, new Headers(), new Headers({ "x-trailer": "1" })]);
        return { status: 200, headers, body: this.#pieces(byte), trailers };
      }
      default:
        return { status: random.pick([200, 413, 500]), headers, body: whole };
    }
  }

  async *#pieces(byte: number): AsyncGenerator<Uint8Array> {
    const { exchange, random } = this;
    this.#held.bodies += 1;
    try {
      const end = random.pick(["end", "end", "end", "throw", "watch", "endless"]);
      if (end === "endless") this.#readOn();
      for (let count = random.below(6); count > 0 || end === "endless"; count -= 1) {
        yield Buffer.alloc(random.pick([0, 1, 1000, 100_000]), byte);
        if (random.below(2) === 0 || end === "endless") await this.turn();
      }
      if (end === "throw") throw enough;
      if (end === "watch") this.#readOn();
      if (end === "watch" && !exchange.signal.aborted) {
        await new Promise((resolve) => exchange.signal.addEventListener("abort", resolve, { once: true }));
      }
    } finally {
      this.#held.bodies -= 1;
    }
  }
}

const enough = new Error("enough");

const actions: readonly ((script: Script) => Promise<void> | void)[] = [
  (script) => script.turn(),
  (script) => script.turn(),
  (script) => script.look(),
  (script) => script.look(),
  (script) => script.read(),
  (script) => script.read(),
  (script) => script.read(),
  (script) => script.send(),
  (script) => (script.random.below(3) === 0 ? script.leave() : script.turn()),
];
