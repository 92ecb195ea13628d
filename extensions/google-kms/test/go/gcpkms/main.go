// Signs with sigstore's Google Cloud KMS client, which cosign uses for gcpkms://. The reference names no version.
//
// Arguments: the server's address, a reference, and an algorithm for a key that does not exist yet. It verifies its own
// signature and then prints the public key in PEM.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature/kms/gcp"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func run(address, reference, algorithm string) error {
	ctx := context.Background()
	signer, err := gcp.LoadSignerVerifier(ctx, reference,
		option.WithEndpoint("passthrough:///"+address),
		option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		return err
	}
	publicKey, err := signer.CreateKey(ctx, algorithm)
	if err != nil {
		return err
	}
	signature, err := signer.SignMessage(strings.NewReader("hello"))
	if err != nil {
		return err
	}
	if err := signer.VerifySignature(strings.NewReader(string(signature)), strings.NewReader("hello")); err != nil {
		return err
	}
	if signer.VerifySignature(strings.NewReader(string(signature)), strings.NewReader("hellO")) == nil {
		return fmt.Errorf("the signature is valid for a different message")
	}
	pem, err := cryptoutils.MarshalPublicKeyToPEM(publicKey)
	if err != nil {
		return err
	}
	fmt.Print(string(pem))
	return nil
}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
