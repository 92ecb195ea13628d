/** Example requests for the API description. */
import { base64, example } from "../../calls/example.ts";

export const examples = [
  example("blockchain.BlockchainService.RegisterNode", "register-node", "Creates a validator.", {
    name: "validator 1",
  }),
  example("blockchain.BlockchainService.AddBlock", "add-block", "Appends a block.", {
    data: base64("hello"),
  }),
  example("blockchain.BlockchainService.GetChain", "get-chain", "Reads the first blocks.", { pageSize: 10 }),
  example("blockchain.BlockchainService.VerifyChain", "verify-chain", "Verifies all blocks."),
  example("blockchain.BlockchainService.ListValidators", "list-validators", "Lists validators.", {
    pageSize: 10,
  }),
  example("blockchain.BlockchainService.ConnectPeer", "connect-peer", "Connects to another server.", {
    // Port 9 (discard): nothing listens on it, even if a server runs on its usual port.
    address: "127.0.0.1:9",
  }),
  example("blockchain.BlockchainService.ListPeers", "list-peers", "Lists peers.", { pageSize: 10 }),
  example(
    "blockchain.BlockchainService.WatchBlocks",
    "watch-blocks",
    "Streams the chain, starting with genesis.",
    { fromIndex: 0 },
  ),
  example("blockchain.BlockchainService.GetHealth", "get-chain-health", "Checks the health of the service."),
];
