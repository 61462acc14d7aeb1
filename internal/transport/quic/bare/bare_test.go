package bare_test

import (
	"bytes"
	"io"
	"testing"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/transport/quic/bare"
)

// keeper remembers what it was given, and whether that was all.
type keeper struct {
	bytes.Buffer
	closed bool
}

func (k *keeper) Close() error {
	k.closed = true
	return nil
}

func TestTheBareRoadCarriesMessagesAndBulkAndLeavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t)
	credentials, err := bare.NewCredentials()
	if err != nil {
		t.Fatal(err)
	}
	kept := &keeper{}
	server, err := bare.Listen(credentials, func() (io.WriteCloser, error) { return kept, nil })
	if err != nil {
		t.Fatal(err)
	}
	client, err := bare.Dial(t.Context(), credentials, server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := client.Echo(64); err != nil {
			t.Fatal(err)
		}
	}
	sent := bytes.Repeat([]byte("bulk"), 1<<20)
	if err := client.Bulk(t.Context(), bytes.NewReader(sent)); err != nil {
		t.Fatal(err)
	}
	if !kept.closed || !bytes.Equal(kept.Bytes(), sent) {
		t.Errorf("%d bytes were kept of %d, to their end: %v", kept.Len(), len(sent), kept.closed)
	}
	if n, err := io.Copy(io.Discard, bare.Blank(3<<20+1)); n != 3<<20+1 || err != nil {
		t.Errorf("%d blank bytes, %v", n, err)
	}
	client.Close()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if err := client.Echo(1); err == nil {
		t.Error("a closed connection still echoes")
	}
}
