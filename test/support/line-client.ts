/** A client in another language: reads one JSON command per line, and answers each with one line. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** A program that runs until `end` is called. */
export interface LineClient<Order, Answer> {
  ask(order: Order): Promise<Answer>;
  end(): Promise<void>;
}

/** Starts the program. */
export function startLineClient<Order, Answer>(
  program: string,
  args: readonly string[] = [],
): LineClient<Order, Answer> {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const closed = once(child, "close");
  return {
    async ask(order) {
      child.stdin.write(`${JSON.stringify(order)}\n`);
      const { done, value } = await lines.next();
      if (done === true) throw new Error(`the client ended before it answered: ${stderr}`);
      return JSON.parse(value);
    },
    async end() {
      child.stdin.end();
      await closed;
    },
  };
}
