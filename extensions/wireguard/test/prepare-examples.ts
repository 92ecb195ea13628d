/** Connects the gateway's agent, which this extension's examples need. */
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { type Agent, connectAgent } from "./agent.ts";

const agents = new Map<string, Agent>();

/** Connects an agent, unless one is connected. The example of WatchPeers replaces it. */
async function requireAgent(url: string): Promise<void> {
  if (agents.has(url)) return;
  const sessionManager = new Http2SessionManager(url);
  const agent = await connectAgent(createGrpcTransport({ baseUrl: url, sessionManager }));
  agents.set(url, agent);
  void agent.ended.then(() => {
    agents.delete(url);
    sessionManager.abort();
  });
}

/** Leaves no stream open after the examples: the last one needs no agent. */
async function endAgent(url: string): Promise<void> {
  const agent = agents.get(url);
  agent?.close();
  await agent?.ended;
}

export const prepare = {
  "register-wireguard-key": requireAgent,
  "get-wireguard-tunnel": requireAgent,
  "agree-on-wireguard-key": requireAgent,
  "confirm-wireguard-key": requireAgent,
  "report-wireguard-key": endAgent,
};
