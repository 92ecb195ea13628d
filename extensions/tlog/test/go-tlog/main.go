// Command tlog reads a verifiable log with the libraries of transparency.dev.
//
// It takes the log's prefix and its verifier keys. For each line on standard input it fetches the newest checkpoint,
// verifies it with every key, proves that the log has only grown, verifies the inclusion of every leaf, and prints
// the findings as JSON.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"

	f_log "github.com/transparency-dev/formats/log"
	f_note "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api/layout"
	"github.com/transparency-dev/tessera/client"
	"golang.org/x/mod/sumdb/note"
)

// found is the result of one round.
type found struct {
	Size        uint64   `json:"size"`
	Before      uint64   `json:"before"`
	Consistency int      `json:"consistency"`
	Signers     []uint32 `json:"signers"`
	Included    int      `json:"included"`
	Leaves      [][]byte `json:"leaves"`
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func check(err error) {
	must(0, err)
}

func main() {
	ctx := context.Background()
	prefix := must(url.Parse(os.Args[1]))
	fetcher := must(client.NewHTTPFetcher(prefix, nil))
	var verifiers []note.Verifier
	for _, vkey := range os.Args[2:] {
		verifiers = append(verifiers, must(f_note.NewVerifier(vkey)))
	}
	origin := verifiers[0].Name()
	tracker := must(client.NewLogStateTracker(ctx, fetcher.ReadTile, nil, verifiers[0], origin,
		client.UnilateralConsensus(fetcher.ReadCheckpoint)))
	out := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		before := tracker.Latest()
		_, hashes, raw, err := tracker.Update(ctx)
		check(err)
		after := tracker.Latest()
		round := found{Size: after.Size, Before: before.Size, Consistency: len(hashes)}
		// The note must verify with every key alone.
		for _, verifier := range verifiers {
			checkpoint, _, opened, err := f_log.ParseCheckpoint(raw, origin, verifier)
			check(err)
			if checkpoint.Size != after.Size || len(opened.Sigs) != 1 {
				check(fmt.Errorf("the key %08x verifies a different checkpoint", verifier.KeyHash()))
			}
			round.Signers = append(round.Signers, opened.Sigs[0].Hash)
		}
		round.readLeaves(ctx, fetcher, after)
		check(out.Encode(round))
	}
}

// readLeaves fetches all entry bundles and verifies that each leaf is in the tree.
func (round *found) readLeaves(ctx context.Context, fetcher *client.HTTPFetcher, checkpoint f_log.Checkpoint) {
	builder := must(client.NewProofBuilder(ctx, checkpoint.Size, fetcher.ReadTile))
	stored := must(client.FetchLeafHashes(ctx, fetcher.ReadTile, 0, checkpoint.Size, checkpoint.Size))
	for bundle := uint64(0); bundle*layout.EntryBundleWidth < checkpoint.Size; bundle++ {
		entries := must(client.GetEntryBundle(ctx, fetcher.ReadEntryBundle, bundle, checkpoint.Size))
		for _, leaf := range entries.Entries {
			index := uint64(len(round.Leaves))
			leafHash := rfc6962.DefaultHasher.HashLeaf(leaf)
			if !bytes.Equal(leafHash, stored[index]) {
				check(fmt.Errorf("leaf %d differs from the tile", index))
			}
			hashes := must(builder.InclusionProof(ctx, index))
			check(proof.VerifyInclusion(rfc6962.DefaultHasher, index, checkpoint.Size, leafHash, hashes, checkpoint.Hash))
			round.Included++
			round.Leaves = append(round.Leaves, leaf)
		}
	}
}
