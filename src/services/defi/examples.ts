/** Example requests for the API description. */
import { answered, base64, example, someId } from "../../calls/example.ts";

const walletId = answered("create-multisig", "walletId", someId("multisig"));
const proposalId = answered("create-proposal", "proposal.proposalId", someId("proposal"));
const signer = (index: number) =>
  answered("create-multisig", `signers.${index}`, `0x${String(index).repeat(40)}`);

export const examples = [
  example(
    "defi.DefiService.CreateMultisig",
    "create-multisig",
    "Creates a wallet with three signers and a threshold of two.",
    {
      signerCount: 3,
      threshold: 2,
    },
  ),
  example("defi.DefiService.CreateProposal", "create-proposal", "Proposes a payment.", {
    walletId,
    data: base64("pay 100 to bob"),
    title: "Pay Bob",
  }),
  example("defi.DefiService.SignProposal", "sign-proposal", "Signs as the first signer.", {
    proposalId,
    signer: signer(0),
  }),
  example("defi.DefiService.SignProposal", "sign-proposal-too", "Signs as the second signer.", {
    proposalId,
    signer: signer(1),
  }),
  example(
    "defi.DefiService.ExecuteProposal",
    "execute-proposal",
    "Executes the proposal that two signers signed.",
    { proposalId },
  ),
  example("defi.DefiService.ListWallets", "list-multisig-wallets", "Lists wallets.", { pageSize: 10 }),
  example("defi.DefiService.ListProposals", "list-proposals", "Lists executed proposals.", {
    walletId,
    proposalStatus: "EXECUTED",
  }),
  example("defi.DefiService.GetHealth", "get-defi-health", "Checks the health of the service."),
];
