/**
 * One TCP connection through a tunnel, as a program in a network namespace: "listen ADDRESS" echoes, "send ADDRESS"
 * writes a line every 50 ms and prints, each second, the number of echoed lines and the longest wait for one. A lost
 * connection ends the program with exit code 1.
 */
import net from "node:net";
import { createInterface } from "node:readline";

const [role = "", host = ""] = process.argv.slice(2);
const port = 7007;
const intervalMs = 50;

if (role === "listen") {
  net
    .createServer((connection) => {
      connection.on("error", () => connection.destroy());
      connection.pipe(connection);
    })
    .listen(port, host, () => console.log("listening"));
} else {
  const connection = net.connect({ host, port, noDelay: true });
  const end = (why: string): never => {
    console.log(JSON.stringify({ lost: why }));
    process.exit(1);
  };
  connection.on("error", ({ message }) => end(message));
  connection.on("end", () => end("the other end closed it"));
  const sentAtMs: number[] = [];
  let [echoed, longestMs] = [0, 0];
  connection.on("connect", () => {
    setInterval(() => {
      sentAtMs.push(performance.now());
      connection.write(`${sentAtMs.length - 1}\n`);
    }, intervalMs);
    setInterval(() => {
      console.log(JSON.stringify({ echoed, longestMs: Math.round(longestMs) }));
      longestMs = 0;
    }, 1000);
  });
  createInterface({ input: connection }).on("line", (line) => {
    if (line !== String(echoed)) end(`echo ${line} instead of ${echoed}`);
    longestMs = Math.max(longestMs, performance.now() - (sentAtMs[echoed] ?? 0));
    echoed += 1;
  });
}
