/** Reads lines from a byte stream, and then the rest of it. */
const newline = 0x0a;

/** Malformed lines or stanzas. Whoever knows what they belong to turns it into a sentence for people. */
export class FormatError extends Error {
  override readonly name = "FormatError";
}

export class ByteReader {
  /** Each chunk is valid until the next one is requested. */
  readonly #chunks: AsyncIterator<Uint8Array>;
  #unread: Uint8Array = new Uint8Array();

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  /**
   * Returns up to `length` bytes without consuming them; fewer only at the end of the input. They are valid until the next
   * call.
   */
  async peek(length: number): Promise<Uint8Array> {
    while (this.#unread.length < length) {
      // A chunk is valid only until the next one is requested.
      const held = Uint8Array.from(this.#unread);
      const chunk = await this.#read();
      this.#unread = chunk === undefined ? held : Buffer.concat([held, chunk]);
      if (chunk === undefined) break;
    }
    return this.#unread.subarray(0, length);
  }

  /** Reads up to `length` bytes; fewer only at the end of the input. They are valid until the next call. */
  async read(length: number): Promise<Uint8Array> {
    const bytes = await this.peek(length);
    this.#unread = this.#unread.subarray(bytes.length);
    return bytes;
  }

  /**
   * Reads a line without its line feed, as Latin-1.
   *
   * @returns undefined if the input ends first
   * @throws FormatError if the line exceeds the limit
   */
  async readLine(maxBytes: number): Promise<string | undefined> {
    const parts: Uint8Array[] = [];
    let length = 0;
    for (let chunk: Uint8Array | undefined = this.#unread; chunk !== undefined; chunk = await this.#read()) {
      const end = chunk.indexOf(newline);
      const part = end < 0 ? chunk : chunk.subarray(0, end);
      parts.push(Uint8Array.from(part));
      length += part.length;
      if (length > maxBytes) throw new FormatError(`a line is longer than ${maxBytes} bytes`);
      if (end < 0) continue;
      this.#unread = chunk.subarray(end + 1);
      return Buffer.concat(parts).toString("latin1");
    }
    this.#unread = new Uint8Array();
    return undefined;
  }

  /** Reads everything that was not read yet. Each chunk is valid until the next one is requested. */
  async *rest(): AsyncGenerator<Uint8Array> {
    for (let chunk: Uint8Array | undefined = this.#unread; chunk !== undefined; chunk = await this.#read())
      if (chunk.length > 0) yield chunk;
  }

  async #read(): Promise<Uint8Array | undefined> {
    const { value, done } = await this.#chunks.next();
    return done ? undefined : value;
  }
}
