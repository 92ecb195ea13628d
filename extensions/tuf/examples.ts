/** Example requests for each call, shown in the API description. */
import { answered, example, someBytes, someId, withAnswers } from "../../src/calls/example.ts";
import answers from "./answers.json" with { type: "json" };

/** A placeholder for the public key of the root's signer. */
export const rootSigner = "root-signer";
/** A placeholder for the signatures that the signer makes over the proposal of `get-root-proposal`. */
export const rootSignatures = "root-signatures";

/** A sample with the length of an ML-DSA-65 signature. */
const someSignature = Buffer.alloc(3309, "signature ").toString("base64");
const repository = "firmware";
const role = "esp32";
const path = "esp32/firmware.bin";
/** SHA-256 of the example's content: "{}". */
const hash = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
const proposalId = answered("propose-root", "proposal.proposalId", someId("proposal"));
const rpc = (name: string) => `tuf.RepositoryService.${name}`;

export const examples = withAnswers(
  [
    example("defi.DefiService.CreateMultisig", "create-root-wallet", "Registers a signer's public key.", {
      signerPublicKeys: [answered(rootSigner, "publicKey", someBytes)],
      threshold: 1,
    }),
    example(
      rpc("CreateRepository"),
      "create-repository",
      "Creates a repository with new keys for its roles.",
      {
        repository,
        walletId: answered("create-root-wallet", "walletId", someId("multisig")),
      },
    ),
    example(rpc("ProposeRoot"), "propose-root", "Proposes the first root.", { repository }),
    example(rpc("GetRootProposal"), "get-root-proposal", "Returns what a signer signs.", {
      repository,
      proposalId,
    }),
    example(rpc("SignRoot"), "sign-root", "Adds the signer's vote and signature.", {
      repository,
      proposalId,
      signer: answered("create-root-wallet", "signers.0", `0x${"0".repeat(40)}`),
      rootSignature: answered(rootSignatures, "rootSignature", someSignature),
      vote: answered(rootSignatures, "vote", someSignature),
    }),
    example("defi.DefiService.ExecuteProposal", "execute-root-proposal", "Executes the proposal.", {
      proposalId,
    }),
    example(rpc("PublishRoot"), "publish-root", "Publishes the root.", { repository, proposalId }),
    example(rpc("SetDelegation"), "set-delegation", "Gives a device type its own key.", { repository, role }),
    example(rpc("UploadTarget"), "upload-target", "Uploads a firmware image, which is the body.", {
      repository,
      path,
      version: "1.2",
    }),
    example(rpc("ListTargets"), "list-targets", "Lists the draft.", { repository }),
    example(rpc("Publish"), "publish-repository", "Publishes the delegation and the draft.", { repository }),
    example(rpc("GetFile"), "get-file", "Downloads the image, as a device does.", {
      repository,
      path: `targets/esp32/${hash}.firmware.bin`,
    }),
    example(rpc("GetRepository"), "get-repository", "Returns the versions, expiry and keys of all roles.", {
      repository,
    }),
    example(rpc("ListRepositories"), "list-repositories", "Lists repositories."),
    example(rpc("RemoveTarget"), "remove-target", "Removes the image with the next publication.", {
      repository,
      path,
    }),
    example(
      rpc("RemoveDelegation"),
      "remove-delegation",
      "Removes the device type's role with the next publication.",
      {
        repository,
        role,
      },
    ),
  ],
  answers,
);
